package import PluginABI

extension Bytes {
    /// Decodes base64 or base64url (RFC 4648, sections 4 and 5). The padding can be left out of base64url. Nothing else
    /// is accepted: no blanks, no mixture of the two alphabets, and no padding in the middle. The unused bits of the last
    /// digit must be zero.
    ///
    /// - Returns: `nil` if the text is not valid.
    package init?(base64 text: String) {
        let text = Array(text.utf8)
        let digits = text.prefix { $0 != UInt8(ascii: "=") }
        let padding = text.dropFirst(digits.count)
        let rest = digits.count % 4
        guard rest != 1, padding.allSatisfy({ $0 == UInt8(ascii: "=") }) else { return nil }
        let isOfPlainAlphabet = digits.contains { $0 == UInt8(ascii: "+") || $0 == UInt8(ascii: "/") }
        guard padding.count == (4 - rest) % 4 || padding.isEmpty && !isOfPlainAlphabet else { return nil }
        var bytes: [UInt8] = []
        bytes.reserveCapacity(digits.count / 4 * 3 + 2)
        var (bits, count) = (UInt32(0), 0)
        var isOfURLAlphabet = false
        for digit in digits {
            guard let value = Self.value(ofDigit: digit) else { return nil }
            if digit == UInt8(ascii: "-") || digit == UInt8(ascii: "_") { isOfURLAlphabet = true }
            (bits, count) = (bits << 6 | value, count + 6)
            guard count >= 8 else { continue }
            count -= 8
            bytes.append(UInt8(truncatingIfNeeded: bits >> UInt32(count)))
            bits &= 1 << UInt32(count) - 1
        }
        guard bits == 0, !(isOfPlainAlphabet && isOfURLAlphabet) else { return nil }
        self.init(bytes)
    }

    private static func value(ofDigit digit: UInt8) -> UInt32? {
        switch digit {
        case 0x41...0x5A: UInt32(digit) - 0x41
        case 0x61...0x7A: UInt32(digit) - 0x61 + 26
        case 0x30...0x39: UInt32(digit) - 0x30 + 52
        case UInt8(ascii: "+"), UInt8(ascii: "-"): 62
        case UInt8(ascii: "/"), UInt8(ascii: "_"): 63
        default: nil
        }
    }
}
