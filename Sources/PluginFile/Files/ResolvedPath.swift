import Glibc

extension String {
    /// The path without links and relative parts; the path itself if there is no such file.
    package var withoutLinks: String {
        guard let resolved = realpath(self, nil) else { return self }
        defer { free(resolved) }
        return String(cString: resolved)
    }

    /// Returns whether this path is that of a folder, or of something in it. Both are absolute and without links.
    package func isBelow(_ folder: String) -> Bool {
        hasBytes(of: folder) || beginsWithBytes(of: folder.utf8.last == UInt8(ascii: "/") ? folder : folder + "/")
    }
}
