/// Decimal numbers as text.
enum DecimalNumber {
    /// Returns the number that a text denotes if it is whole and fits into 64 bits; otherwise `nil`. The result is
    /// computed from the digits, never through a double.
    ///
    /// - Parameter text: A number as in JSON, `-12.50e+3`. Leading zeros and a leading `+` are accepted.
    static func wholeNumber(_ text: Slice<UnsafeBufferPointer<UInt8>>) -> Int? {
        let isNegative = text.first == UInt8(ascii: "-")
        let rest = isNegative || text.first == UInt8(ascii: "+") ? text.dropFirst() : text
        let mark = rest.firstIndex { $0 | 0x20 == UInt8(ascii: "e") } ?? rest.endIndex
        let mantissa = rest[..<mark]
        guard let last = mantissa.lastIndex(where: { $0 != UInt8(ascii: "0") && $0 != UInt8(ascii: ".") }) else {
            return 0
        }
        // The digits up to the last one that is not zero are multiplied by a power of ten.
        let point = mantissa.firstIndex(of: UInt8(ascii: ".")) ?? mark
        var power = point > last ? point - last - 1 : point - last
        if mark < rest.endIndex {
            // With a larger exponent, the text of a whole number would need more digits than fit into memory.
            let exponent = Int(String(decoding: rest[(mark + 1)...], as: UTF8.self))
            guard let exponent, exponent.magnitude < 1 << 40 else { return nil }
            power += exponent
        }
        guard power >= 0 else { return nil }
        var number: UInt64 = 0
        for byte in mantissa[...last] where byte != UInt8(ascii: ".") {
            guard append(byte &- UInt8(ascii: "0"), to: &number) else { return nil }
        }
        for _ in 0..<power { guard append(0, to: &number) else { return nil } }
        if isNegative { return number <= Int.min.magnitude ? Int(truncatingIfNeeded: 0 &- number) : nil }
        return Int(exactly: number)
    }

    /// Appends a digit. Returns false if the number does not fit into 64 bits.
    private static func append(_ digit: UInt8, to number: inout UInt64) -> Bool {
        let (product, isOver) = number.multipliedReportingOverflow(by: 10)
        let (sum, isMore) = product.addingReportingOverflow(UInt64(digit))
        number = sum
        return !isOver && !isMore
    }
}
