import PluginABI

/// The path of a URL, decoded once, as the numbers that patterns are matched on: Unicode scalars, with the slashes that
/// separate segments told apart from those that were written `%2F` and belong to a segment.
enum PathScalars {
    static let separator: UInt32 = 0x2F
    /// A slash that was escaped: no scalar, so that nothing but a class or a wildcard takes it.
    static let escapedSeparator: UInt32 = 0x110000 | 0x2F

    /// - Throws: `invalidURL`, with the position, for an escape that is none, or bytes that are no UTF-8 when decoded.
    static func decode(_ path: Substring.UTF8View, of url: String) throws(PluginError) -> [UInt32] {
        try decode(Array(path), offset: url.utf8.distance(from: url.startIndex, to: path.startIndex), of: url)
    }

    static func decode(_ bytes: some RandomAccessCollection<UInt8>, offset: Int, of url: String) throws(PluginError)
        -> [UInt32]
    {
        var decoded: [UInt8] = []
        var escapedSlashes: [Int] = []
        decoded.reserveCapacity(bytes.count)
        var index = bytes.startIndex
        while index < bytes.endIndex {
            let byte = bytes[index]
            let position = offset + bytes.distance(from: bytes.startIndex, to: index)
            if byte == UInt8(ascii: "%") {
                let rest = bytes[index...].dropFirst().prefix(2)
                guard let value = hexadecimal(rest) else {
                    throw PluginError(
                        .invalidURL,
                        "The escape at byte \(position) of “\(url.shortened)” is not % and two hexadecimal digits.")
                }
                if value == UInt8(ascii: "/") { escapedSlashes.append(decoded.count) }
                decoded.append(value)
                index = bytes.index(index, offsetBy: 3)
            } else {
                decoded.append(byte)
                index = bytes.index(after: index)
            }
        }
        guard let text = String(validating: decoded, as: UTF8.self) else {
            throw PluginError(
                .invalidURL, "“\(url.shortened)” is no UTF-8 when it is decoded (from byte \(offset) on).")
        }
        var scalars = text.unicodeScalars.map(\.value)
        if !escapedSlashes.isEmpty {
            var byte = 0
            let marked = Set(escapedSlashes)
            for (place, scalar) in text.unicodeScalars.enumerated() {
                if marked.contains(byte) { scalars[place] = escapedSeparator }
                byte += UTF8.width(scalar)
            }
        }
        return scalars
    }

    private static func hexadecimal(_ digits: some Collection<UInt8>) -> UInt8? {
        guard digits.count == 2 else { return nil }
        var value: UInt8 = 0
        for digit in digits {
            guard let number = Character(UnicodeScalar(digit)).hexDigitValue else { return nil }
            value = value << 4 | UInt8(number)
        }
        return value
    }

    /// The scalars of a text, undecoded.
    static func plain(_ text: String) -> [UInt32] {
        let isASCII = text.utf8.allSatisfy { $0 < 0x80 }
        return isASCII ? text.utf8.map(UInt32.init) : text.unicodeScalars.map(\.value)
    }

    /// The text of decoded scalars.
    static func text(_ scalars: some Sequence<UInt32>) -> String {
        var text = String.UnicodeScalarView()
        for scalar in scalars {
            text.append(scalar == escapedSeparator ? "/" : UnicodeScalar(scalar) ?? "\u{FFFD}")
        }
        return String(text)
    }

    /// The scalars of a piece of a URL.
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

    /// The bytes of scalars, as `RawText` has them.
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

    /// The pieces of a text that ranges of its scalars mean.
    static func texts(_ ranges: [Range<Int>?], of text: RawText, _ scalars: [UInt32]) -> [RawText?] {
        var offsets = [0]
        offsets.reserveCapacity(scalars.count + 1)
        for scalar in scalars {
            let width = UnicodeScalar(scalar).map(UTF8.width) ?? 1
            offsets.append(offsets[offsets.count - 1] + width)
        }
        return ranges.map { range in range.map { text.part(offsets[$0.lowerBound], offsets[$0.upperBound]) } }
    }

    /// Without `.` and `..` segments, as URLs are read (WHATWG URL, path state). A path that does not begin with a slash
    /// is returned as it is.
    static func withoutDots(_ path: [UInt32]) -> [UInt32] {
        let dot = UInt32(0x2E)
        guard path.first == separator, path.contains(dot) else { return path }
        let segments = path.split(separator: separator, omittingEmptySubsequences: false)
        guard segments.contains(where: { $0.elementsEqual([dot]) || $0.elementsEqual([dot, dot]) }) else { return path }
        var kept: [ArraySlice<UInt32>] = []
        for (index, segment) in segments.enumerated() {
            let isLast = index == segments.count - 1
            if segment.elementsEqual([dot, dot]) {
                if kept.count > 1 { kept.removeLast() }
                if isLast { kept.append([]) }
            } else if segment.elementsEqual([dot]) {
                if isLast { kept.append([]) }
            } else {
                kept.append(segment)
            }
        }
        return Array(kept.joined(separator: [separator]))
    }
}
