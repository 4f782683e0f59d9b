import PluginABI

/// Conversions of paths to the numbers that patterns are matched against: decoded Unicode scalars, in which slashes
/// that separate segments differ from those that were written as `%2F` and belong to a segment.
enum PathScalars {
    static let separator: UInt32 = 0x2F
    /// An escaped slash. It is not a Unicode scalar, so only a class or a wildcard matches it.
    static let escapedSeparator: UInt32 = 0x110000 | 0x2F

    /// Returns the scalars of a path that may contain escapes.
    ///
    /// - Throws: `invalidURL`, with the position, if an escape is invalid or the decoded bytes are not valid UTF-8.
    static func decode(_ path: String) throws(PluginError) -> [UInt32] {
        try path.withRawText { (path) throws(PluginError) in
            try withUnsafeTemporaryAllocation(of: UInt8.self, capacity: path.count + 1) {
                (memory) throws(PluginError) in
                var decoder = URLDecoder(url: path, text: memory.baseAddress!)
                return scalars(try decoder.decode(path, as: .path))
            }
        }
    }

    /// Returns the scalars of a text without decoding escapes.
    static func plain(_ text: String) -> [UInt32] {
        let isASCII = text.utf8.allSatisfy { $0 < 0x80 }
        return isASCII ? text.utf8.map(UInt32.init) : text.unicodeScalars.map(\.value)
    }

    /// Returns the text of decoded scalars.
    static func text(_ scalars: some Sequence<UInt32>) -> String {
        var text = String.UnicodeScalarView()
        for scalar in scalars {
            text.append(scalar == escapedSeparator ? "/" : UnicodeScalar(scalar) ?? "\u{FFFD}")
        }
        return String(text)
    }

    /// Returns the scalars of a piece of a URL.
    static func scalars(_ text: RawText) -> [UInt32] {
        var scalars: [UInt32] = []
        scalars.reserveCapacity(text.count)
        for (index, piece) in text.split(separator: RawText.escapedSlash, omittingEmptySubsequences: false).enumerated()
        {
            if index > 0 { scalars.append(escapedSeparator) }
            for scalar in String(decoding: piece, as: UTF8.self).unicodeScalars { scalars.append(scalar.value) }
        }
        return scalars
    }

    /// Returns the bytes of scalars, as in a `RawText`.
    static func bytes(_ scalars: some Sequence<UInt32>) -> [UInt8] {
        var bytes: [UInt8] = []
        for value in scalars {
            if value < 0x80 {
                bytes.append(UInt8(value))
            } else if value == escapedSeparator {
                bytes.append(RawText.escapedSlash)
            } else if let scalar = UnicodeScalar(value) {
                bytes.append(contentsOf: UTF8.encode(scalar)!)
            }
        }
        return bytes
    }

    /// Returns the pieces of a text at ranges of its scalars.
    static func texts(_ ranges: [Range<Int>?], of text: RawText, _ scalars: [UInt32]) -> [RawText?] {
        var offsets = [0]
        offsets.reserveCapacity(scalars.count + 1)
        for scalar in scalars {
            let width = UnicodeScalar(scalar).map(UTF8.width) ?? 1
            offsets.append(offsets[offsets.count - 1] + width)
        }
        return ranges.map { range in range.map { text.part(offsets[$0.lowerBound], offsets[$0.upperBound]) } }
    }

    /// Returns a path without `.` and `..` segments, as in URLs (WHATWG URL, path state). A path that does not begin
    /// with a slash is returned unchanged.
    static func withoutDots(_ path: [UInt32]) -> [UInt32] {
        let dot = UInt32(0x2E)
        guard path.first == separator, path.contains(dot) else { return path }
        var segments = path.split(separator: separator, omittingEmptySubsequences: false)
        let count = segments.withUnsafeMutableBufferPointer { dropDots($0, insteadOf: []) }
        return count.map { Array(segments[..<$0].joined(separator: [separator])) } ?? path
    }
}

/// Removes `.` and `..` from the segments of a path that begins with a slash (WHATWG URL, path state). Moves the
/// remaining segments to the beginning and returns their number, or `nil` if there was nothing to remove.
///
/// - Parameter empty: The segment that replaces `.` or `..` at the end.
func dropDots<Segment: Collection>(
    _ segments: UnsafeMutableBufferPointer<Segment>, insteadOf empty: Segment
) -> Int? where Segment.Element: FixedWidthInteger {
    func dots(_ segment: Segment) -> Int {
        segment.count <= 2 && segment.allSatisfy { $0 == 0x2E } ? segment.count : 0
    }
    guard segments[0].isEmpty, segments.contains(where: { dots($0) > 0 }) else { return nil }
    var kept = 0
    for (index, segment) in segments.enumerated() {
        let dots = dots(segment)
        if dots == 2, kept > 1 { kept -= 1 }
        if dots > 0, index < segments.count - 1 { continue }
        segments[kept] = dots > 0 ? empty : segment
        kept += 1
    }
    return kept
}
