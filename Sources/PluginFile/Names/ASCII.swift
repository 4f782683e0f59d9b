extension UInt8 {
    /// Whether the byte is an ASCII digit.
    package var isDigit: Bool { (0x30...0x39).contains(self) }
    /// Whether the byte is an ASCII letter.
    package var isLetter: Bool { (0x61...0x7A).contains(self | 0x20) }
}
