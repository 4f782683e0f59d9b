/// Decimal numbers as text.
enum DecimalNumber {
    /// The number that a text stands for if it is whole and fits 64 bits, decided on its digits and never by way of a
    /// double; else nil.
    ///
    /// - Parameter text: As JSON writes numbers, `-12.50e+3`; leading zeros and a `+` in front are accepted.
    static func wholeNumber(_ text: Slice<UnsafeBufferPointer<UInt8>>) -> Int? {
        var rest = text
        let isNegative = rest.first == UInt8(ascii: "-")
        if isNegative || rest.first == UInt8(ascii: "+") { rest.removeFirst() }

        // The digits without zeros behind them, as far as 64 bits hold them, and the power of ten to multiply with.
        var (number, power): (UInt64, Int) = (0, 0)
        var zeros = 0
        var (isFraction, isTooLarge) = (false, false)
        while let byte = rest.first, byte != UInt8(ascii: "e"), byte != UInt8(ascii: "E") {
            rest.removeFirst()
            if byte == UInt8(ascii: ".") {
                isFraction = true
                continue
            }
            if isFraction { power -= 1 }
            if byte == UInt8(ascii: "0") {
                if number > 0 || isTooLarge { zeros += 1 }
                continue
            }
            isTooLarge = isTooLarge || !append(zeros: zeros + 1, to: &number)
            zeros = 0
            if !isTooLarge {
                let (sum, overflows) = number.addingReportingOverflow(UInt64(byte &- UInt8(ascii: "0")))
                (number, isTooLarge) = (sum, overflows)
            }
        }
        if isTooLarge { return nil }
        if number == 0 { return 0 }
        power += zeros
        if !rest.isEmpty {
            guard let exponent = exponent(rest.dropFirst()) else { return nil }
            power += exponent
        }
        guard power >= 0, append(zeros: power, to: &number) else { return nil }
        if isNegative { return number <= Int.min.magnitude ? Int(truncatingIfNeeded: 0 &- number) : nil }
        return Int(exactly: number)
    }

    /// Multiplies with a power of ten; false where 64 bits do not hold the product.
    private static func append(zeros: Int, to number: inout UInt64) -> Bool {
        if number == 0 { return true }
        for _ in 0..<zeros {
            let (product, overflows) = number.multipliedReportingOverflow(by: 10)
            if overflows { return false }
            number = product
        }
        return true
    }

    /// An exponent with or without a sign; nil for one that makes no number of 64 bits whole, whatever the digits of a
    /// text that fits into memory are.
    private static func exponent(_ text: Slice<UnsafeBufferPointer<UInt8>>) -> Int? {
        let isNegative = text.first == UInt8(ascii: "-")
        var exponent = 0
        for byte in isNegative || text.first == UInt8(ascii: "+") ? text.dropFirst() : text {
            exponent = exponent * 10 + Int(byte &- UInt8(ascii: "0"))
            if exponent > 1 << 40 { return nil }
        }
        return isNegative ? -exponent : exponent
    }
}
