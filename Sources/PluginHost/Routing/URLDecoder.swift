import PluginABI

/// A decoder for pieces of a URL, which writes into memory that the caller provides. Decoding never makes a piece
/// longer.
struct URLDecoder {
    let url: RawText
    /// The address at which the next piece is written.
    private(set) var text: UnsafeMutablePointer<UInt8>

    enum Component {
        case host
        /// Escaped slashes are marked.
        case path
        /// A plus sign is decoded as a space.
        case query
    }

    /// Decodes a piece. Returns the piece itself if nothing in it needs decoding.
    ///
    /// - Throws: `invalidURL`, with the position, if an escape is invalid or the decoded bytes are not valid UTF-8.
    mutating func decode(_ piece: RawText, as component: Component) throws(PluginError) -> RawText {
        let isQuery = component == .query
        guard piece.contains(where: { $0 == UInt8(ascii: "%") || (isQuery && $0 == UInt8(ascii: "+")) }) else {
            return piece
        }
        let start = text
        var index = 0
        var needsCheck = false
        while index < piece.count {
            var byte = piece[index]
            if byte == UInt8(ascii: "%") {
                guard index + 2 < piece.count, let high = Self.digit(piece[index + 1]),
                    let low = Self.digit(piece[index + 2])
                else { throw invalidEscape(piece, index) }
                byte = high << 4 | low
                if byte >= 0x80 { needsCheck = true }
                if byte == RawText.escapedSlash { throw notText(piece, index) }
                if byte == UInt8(ascii: "/"), component == .path { byte = RawText.escapedSlash }
                index += 3
            } else {
                if byte == UInt8(ascii: "+"), isQuery { byte = UInt8(ascii: " ") }
                index += 1
            }
            text.pointee = byte
            text += 1
        }
        let decoded = RawText(start: start, count: text - start)
        if needsCheck, let error = Self.errorOffset(decoded) { throw notText(piece, Self.offset(error, in: piece)) }
        return decoded
    }

    /// Returns a copy of a text that is not part of the URL.
    mutating func copy(_ other: String) -> RawText {
        let start = text
        for byte in other.utf8 {
            text.pointee = byte
            text += 1
        }
        return RawText(start: start, count: text - start)
    }

    /// Returns a piece in lower case; the piece itself if it is in lower case already.
    mutating func lowerCase(_ piece: RawText) -> RawText {
        guard piece.contains(where: { (0x41...0x5A).contains($0) || $0 >= 0x80 }) else { return piece }
        let start = text
        for byte in String(decoding: piece, as: UTF8.self).lowercased().utf8 {
            text.pointee = byte
            text += 1
        }
        return RawText(start: start, count: text - start)
    }

    /// Returns the path that consists of the segments.
    mutating func join(_ segments: UnsafeBufferPointer<RawText>) -> RawText {
        let start = text
        for (index, segment) in segments.enumerated() {
            if index > 0 {
                text.pointee = UInt8(ascii: "/")
                text += 1
            }
            if let source = segment.baseAddress { text.update(from: source, count: segment.count) }
            text += segment.count
        }
        return RawText(start: start, count: text - start)
    }

    @inline(__always)
    private static func digit(_ byte: UInt8) -> UInt8? {
        switch byte {
        case 0x30...0x39: byte - 0x30
        case 0x41...0x46: byte - 0x37
        case 0x61...0x66: byte - 0x57
        default: nil
        }
    }

    /// Returns the offset of the first byte that is not part of valid UTF-8; `nil` if there is none.
    private static func errorOffset(_ bytes: RawText) -> Int? {
        for piece in bytes.split(separator: RawText.escapedSlash) {
            do throws(UTF8.ValidationError) {
                _ = try UTF8Span(validating: Span(_unsafeElements: RawText(rebasing: piece)))
            } catch {
                return piece.startIndex + error.byteOffsets.lowerBound
            }
        }
        return nil
    }

    /// Returns the offset in a piece of the byte at an offset in the decoded piece.
    private static func offset(_ decoded: Int, in piece: RawText) -> Int {
        var offset = 0
        for _ in 0..<decoded { offset += piece[offset] == UInt8(ascii: "%") ? 3 : 1 }
        return offset
    }

    // MARK: Errors

    private func position(of piece: RawText) -> Int {
        guard let start = piece.baseAddress, let whole = url.baseAddress else { return 0 }
        return start - whole
    }

    private func invalidEscape(_ piece: RawText, _ index: Int) -> PluginError {
        PluginError(
            .invalidURL,
            "The escape at byte \(position(of: piece) + index) of “\(url.string.shortened)” is not a % followed by two "
                + "hexadecimal digits.")
    }

    private func notText(_ piece: RawText, _ index: Int) -> PluginError {
        PluginError(
            .invalidURL,
            "“\(url.string.shortened)” is not valid UTF-8 when decoded (from byte \(position(of: piece) + index) on).")
    }

    func hasNoName(_ item: RawText) -> PluginError {
        PluginError(
            .invalidURL,
            "A query item at byte \(position(of: item)) of “\(url.string.shortened)” has no name.")
    }
}
