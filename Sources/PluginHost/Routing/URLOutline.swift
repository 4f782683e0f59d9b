import PluginABI

/// The offsets of the pieces of a URL and the memory that they need, found in one pass over its bytes.
struct URLOutline {
    /// The end of the scheme; 0 if the URL is written without one. It then begins with its host, or with two slashes.
    private(set) var schemeEnd = 0
    private(set) var hostStart = 0
    private(set) var pathStart = 0
    private(set) var pathEnd = 0
    private(set) var queryStart = 0
    /// The beginning of the fragment, or the end of the URL.
    private(set) var end = 0
    private(set) var slashes = 0
    /// The largest possible number of query items.
    private(set) var items = 0
    /// Whether the URL contains a `%` or a `+`.
    private(set) var isEscaped = false
    /// Whether a segment may be `.` or `..`.
    private(set) var mayHaveDots = false
    private let count: Int

    /// Finds the pieces of a URL.
    ///
    /// - Parameter longest: How many bytes the URL may have. This is checked first.
    /// - Throws: `invalidURL` if the URL is too long, or invalid regardless of its escapes.
    @inline(__always)
    init(_ bytes: RawText, longest: Int) throws(PluginError) {
        count = bytes.count
        guard count <= longest else { throw .tooLong(count, longest) }
        try checkCharacters(bytes)
        var index = Self.endOfScheme(bytes)
        schemeEnd = max(0, index)
        index = index < 0 ? 0 : index + 1
        if index + 1 < count, bytes[index] == UInt8(ascii: "/"), bytes[index + 1] == UInt8(ascii: "/") {
            index += 2
        } else if schemeEnd > 0, Self.isPort(bytes, after: schemeEnd) {
            (schemeEnd, index) = (0, 0)
        } else if schemeEnd > 0 {
            throw PluginError(.invalidURL, "“\(bytes.string.shortened)” has no // after its scheme.")
        }
        hostStart = index
        while index < count, !Self.endsHost(bytes[index]) { index &+= 1 }
        if let at = bytes[hostStart..<index].lastIndex(of: UInt8(ascii: "@")) { throw .namesUser(bytes, at) }
        pathStart = index
        mayHaveDots = isEscaped || startsWithDot(bytes, index)  // %2E
        while index < count, case let byte = bytes[index], byte != UInt8(ascii: "?"), byte != UInt8(ascii: "#") {
            index &+= 1
            guard byte == UInt8(ascii: "/") else { continue }
            slashes &+= 1
            if startsWithDot(bytes, index) { mayHaveDots = true }
        }
        pathEnd = index
        queryStart = index
        if index < count, bytes[index] == UInt8(ascii: "?") {
            index += 1
            (queryStart, items) = (index, 1)
            while index < count, bytes[index] != UInt8(ascii: "#") {
                if bytes[index] == UInt8(ascii: "&") { items &+= 1 }
                index &+= 1
            }
        }
        end = index
    }

    /// The number of bytes that `URLText` needs for its pieces: for lists of segments and items, and for decoded text.
    /// In UTF-8, converting a text to lower case can make it up to three times as long.
    @inline(__always)
    var memory: Int {
        (slashes + 1) * MemoryLayout<RawText>.stride + items * MemoryLayout<URLText.Item>.stride
            + schemeEnd + (pathStart - hostStart) * 4
            + (isEscaped ? end - pathStart : 0) + (mayHaveDots ? pathEnd - pathStart : 0)
    }

    /// Checks that there are no spaces or control characters, and looks for escapes, eight bytes at a time.
    @inline(__always)
    private mutating func checkCharacters(_ bytes: RawText) throws(PluginError) {
        guard count > 0 else { throw PluginError(.invalidURL, "An empty text is not a URL.") }
        let start = UnsafeRawPointer(bytes.baseAddress!)
        var offset = 0
        var (bad, escapes) = (UInt64(0), UInt64(0))
        while offset < count {
            var word: UInt64
            if count >= 8 {
                // The last eight bytes may have been checked in part.
                word = start.loadUnaligned(fromByteOffset: min(offset, count &- 8), as: UInt64.self)
            } else {
                word = Bits.each(0x61)  // Filled with a byte that none of the checks look for.
                for index in offset..<count { word = word << 8 | UInt64(bytes[index]) }
            }
            bad |= Bits.below(0x21, in: word) | Bits.equal(0x7F, in: word)
            escapes |= Bits.equal(UInt8(ascii: "%"), in: word) | Bits.equal(UInt8(ascii: "+"), in: word)
            offset &+= 8
        }
        isEscaped = escapes != 0
        if bad != 0 { throw .hasBlank(bytes) }
    }

    /// Returns the offset of the colon after the scheme; -1 if there is no scheme.
    @inline(__always)
    private static func endOfScheme(_ bytes: RawText) -> Int {
        guard (0x41...0x5A).contains(bytes[0] & 0xDF) else { return -1 }
        for index in 1..<max(1, bytes.count) {
            switch bytes[index] {
            case UInt8(ascii: ":"): return index
            case 0x30...0x39, 0x41...0x5A, 0x61...0x7A, 0x2B, 0x2D, 0x2E: continue
            default: return -1
            }
        }
        return -1
    }

    /// Returns whether the text after a colon is the port of a host, as in `localhost:8080/q`, which has no scheme.
    private static func isPort(_ bytes: RawText, after colon: Int) -> Bool {
        let text = bytes[(colon + 1)...].prefix { !endsHost($0) }
        return (1...5).contains(text.count) && text.allSatisfy { (0x30...0x39).contains($0) }
    }

    @inline(__always)
    private func startsWithDot(_ bytes: RawText, _ segment: Int) -> Bool {
        segment < count && bytes[segment] == UInt8(ascii: ".")
    }

    @inline(__always)
    private static func endsHost(_ byte: UInt8) -> Bool {
        byte == UInt8(ascii: "/") || byte == UInt8(ascii: "?") || byte == UInt8(ascii: "#")
    }
}

/// Checks of eight bytes at once. A result that is not 0 means that at least one byte satisfies the condition. (S. E.
/// Anderson, "Bit Twiddling Hacks", zero in a word.)
private enum Bits {
    @inline(__always)
    static func each(_ byte: UInt8) -> UInt64 { 0x0101_0101_0101_0101 &* UInt64(byte) }

    /// Finds bytes below `bound`, which may be at most 0x80.
    @inline(__always)
    static func below(_ bound: UInt8, in word: UInt64) -> UInt64 { (word &- each(bound)) & ~word & each(0x80) }

    @inline(__always)
    static func equal(_ byte: UInt8, in word: UInt64) -> UInt64 { below(1, in: word ^ each(byte)) }
}

extension PluginError {
    static func tooLong(_ count: Int, _ longest: Int) -> PluginError {
        PluginError(
            .invalidURL,
            "The URL has \(count) bytes; at most \(longest) are accepted. The setting maximumURLLength (for "
                + "'pluginhost', the option --url-length) allows up to \(URLText.lengths.upperBound).")
    }

    static func hasNoScheme(_ url: RawText) -> PluginError {
        PluginError(
            .invalidURL,
            "“\(url.string.shortened)” has no scheme, and no scheme is configured for such URLs: write scheme://host/path."
        )
    }

    fileprivate static func hasBlank(_ url: RawText) -> PluginError {
        let offset = url.firstIndex { $0 <= 0x20 || $0 == 0x7F } ?? 0
        return PluginError(
            .invalidURL,
            "“\(url.string.shortened)” has a space or control character at byte \(offset): write it as %XX.")
    }

    fileprivate static func namesUser(_ url: RawText, _ end: Int) -> PluginError {
        PluginError(
            .invalidURL, "“\(url.string.shortened)” contains a user name (up to byte \(end)), which no route can match."
        )
    }
}
