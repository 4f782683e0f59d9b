extension UInt8 {
    /// Whether the byte is an ASCII digit.
    package var isDigit: Bool { (0x30...0x39).contains(self) }
    /// Whether the byte is an ASCII letter.
    package var isLetter: Bool { (0x61...0x7A).contains(self | 0x20) }
}

extension UInt8 {
    /// Whether the byte is a blank of XML and JSON: a space, a tab, or an end of line.
    var isBlank: Bool { self == 0x20 || self == 0x09 || self == 0x0A || self == 0x0D }
}

extension String {
    /// The text without blanks at both ends.
    package var trimmed: String {
        let bytes = utf8
        guard let first = bytes.firstIndex(where: { !$0.isBlank }) else { return "" }
        return String(decoding: bytes[first...bytes.lastIndex { !$0.isBlank }!], as: UTF8.self)
    }
}
