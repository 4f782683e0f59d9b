extension String {
    /// The last component of a path: its file name. `/` for the root folder; slashes at the end do not count.
    package var fileName: String {
        let (name, path) = (nameRange, utf8)
        return name.isEmpty ? (isEmpty ? "" : "/") : String(decoding: path[name], as: UTF8.self)
    }

    /// The path without its last component: the folder that contains the file. `/` for a file in the root folder and
    /// for the root folder itself; empty for a name alone.
    package var parentFolder: String {
        let path = utf8
        let before = path[..<nameRange.lowerBound]
        guard !before.isEmpty else { return "" }
        // The separators at the end, but not those of the root folder.
        guard let last = before.lastIndex(where: { $0 != UInt8(ascii: "/") }) else { return "/" }
        return String(decoding: before[...last], as: UTF8.self)
    }

    /// The bytes of the last component; an empty range after the slashes if the path consists of slashes.
    private var nameRange: Range<String.UTF8View.Index> {
        let (path, slash) = (utf8, UInt8(ascii: "/"))
        guard let last = path.lastIndex(where: { $0 != slash }) else { return path.endIndex..<path.endIndex }
        let start = path[...last].lastIndex(of: slash).map { path.index(after: $0) } ?? path.startIndex
        return start..<path.index(after: last)
    }
}
