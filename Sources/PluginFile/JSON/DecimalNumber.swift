/// Decimal numbers as text.
enum DecimalNumber {
    /// The number that a text stands for if it is whole and fits 64 bits, decided on its digits and never by way of a
    /// double; else nil.
    ///
    /// - Parameter text: As JSON writes numbers, `-12.50e+3`; leading zeros and a `+` in front are accepted.
    static func wholeNumber(_ text: String) -> Int? {
        if let number = Int(text) { return number }
        let bytes = text.utf8
        let mark = bytes.firstIndex { $0 | 0x20 == UInt8(ascii: "e") } ?? bytes.endIndex
        let digits = bytes[..<mark].lazy.filter(\.isDigit)
        if digits.allSatisfy({ $0 == UInt8(ascii: "0") }) { return 0 }
        // The digits without zeros behind them are to be multiplied with this power of ten.
        let zeros = digits.reversed().prefix { $0 == UInt8(ascii: "0") }.count
        let point = bytes[..<mark].firstIndex(of: UInt8(ascii: "."))
        let fraction = point.map { bytes.distance(from: $0, to: mark) - 1 } ?? 0
        // No text that fits into memory has so many digits that a larger exponent makes them whole.
        guard let exponent = mark == bytes.endIndex ? 0 : Int(text[mark...].dropFirst()), exponent.magnitude < 1 << 40,
            case let power = exponent - fraction + zeros, (0..<20).contains(power)
        else { return nil }
        let whole = String(decoding: digits.dropLast(zeros), as: UTF8.self) + String(repeating: "0", count: power)
        return Int((text.hasPrefix("-") ? "-" : "") + whole)
    }
}
