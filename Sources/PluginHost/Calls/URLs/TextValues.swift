// Conversion of a URL's text to declared numbers and booleans: nothing is lost, and nothing is guessed.

package import PluginABI
import PluginFile

extension RawText {
    /// The text as an integer: decimal digits with or without a sign, and with a point or an exponent if the number is
    /// whole (`3.0`, `1e3`). Decided on the digits, so that any integer of 64 bits is exact. `nil` for any other text,
    /// and for numbers that do not fit into 64 bits.
    @inline(__always)
    var integer: Int64? {
        guard count > 0 else { return nil }
        let isNegative = self[0] == UInt8(ascii: "-")
        var index = isNegative || self[0] == UInt8(ascii: "+") ? 1 : 0
        guard index < count else { return nil }
        var number: Int64 = 0
        while index < count {
            let digit = self[index] &- UInt8(ascii: "0")
            guard digit <= 9 else { return wholeNumber }
            guard number.append(digit) else { return wholeNumber }
            index += 1
        }
        if isNegative { return number }
        return number == .min ? nil : -number
    }

    /// The text as an integer that may have a point with digits on both sides, or an exponent.
    private var wholeNumber: Int64? {
        let isNegative = first == UInt8(ascii: "-")
        let start = isNegative || first == UInt8(ascii: "+") ? 1 : 0
        let end = firstIndex { $0 | 0x20 == UInt8(ascii: "e") } ?? count
        guard start <= end, let exponent = end < count ? part(end + 1, count).exponent : 0 else { return nil }
        let point = self[..<end].firstIndex(of: UInt8(ascii: ".")) ?? end
        let (whole, fraction) = (part(start, point), part(Swift.min(point + 1, end), end))
        guard whole.isDigits, point == end || fraction.isDigits else { return nil }

        let digits = [whole, fraction].joined()
        let total = whole.count + fraction.count
        let zeros = digits.reversed().prefix { $0 == UInt8(ascii: "0") }.count
        if zeros == total { return 0 }
        // The number is the digits without the trailing zeros, times this power of ten.
        let power = exponent - fraction.count + zeros
        guard power >= 0 else { return nil }
        var number: Int64 = 0
        for digit in digits.prefix(total - zeros) {
            guard number.append(digit &- UInt8(ascii: "0")) else { return nil }
        }
        for _ in 0..<power { guard number.append(0) else { return nil } }
        if isNegative { return number }
        return number == .min ? nil : -number
    }

    private var isDigits: Bool { !isEmpty && allSatisfy { (0x30...0x39).contains($0) } }

    /// The text as an exponent. A very large exponent is capped, far beyond the exponents of numbers of 64 bits.
    private var exponent: Int? {
        let isNegative = first == UInt8(ascii: "-")
        let digits = part(isNegative || first == UInt8(ascii: "+") ? 1 : 0, count)
        guard digits.isDigits else { return nil }
        let magnitude = digits.reduce(0) { Swift.min($0 * 10 + Int($1 - UInt8(ascii: "0")), 1 << 40) }
        return isNegative ? -magnitude : magnitude
    }

    /// The text as a decimal number with or without a sign, a point and an exponent; not `nan`, `inf` or hexadecimal
    /// digits. `nil` for any other text, and for numbers that are too large.
    var number: Double? {
        let isDecimal = allSatisfy { byte in
            switch byte {
            case 0x30...0x39, UInt8(ascii: "+"), UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "e"),
                UInt8(ascii: "E"):
                true
            default: false
            }
        }
        guard isDecimal, let last, (0x30...0x39).contains(last) else { return nil }
        guard let number = Double(string), number.isFinite else { return nil }
        return number
    }

    /// The text as a boolean: `true`, `false`, `1` or `0`.
    var flag: Bool? {
        switch string {
        case "true", "1": true
        case "false", "0": false
        default: nil
        }
    }
}

extension Int64 {
    /// Appends a decimal digit. The number is built as a negative one, because there is one more negative number than
    /// positive ones.
    ///
    /// - Returns: False if the number does not fit.
    @inline(__always)
    fileprivate mutating func append(_ digit: UInt8) -> Bool {
        let (shifted, isTooLarge) = multipliedReportingOverflow(by: 10)
        let (sum, isTooLargeNow) = shifted.subtractingReportingOverflow(Int64(digit))
        if isTooLarge || isTooLargeNow { return false }
        self = sum
        return true
    }
}

extension RawText {
    /// The text as a value of a type; `nil` if it is not such a value.
    func value(of kind: Value.Kind) -> Value? {
        switch kind {
        case .string, .any: .string(string)
        case .int: integer.map { .int(Int($0)) }
        case .double: number.map(Value.double)
        case .bool: flag.map(Value.bool)
        case .bytes: Bytes(base64: string).map(Value.bytes)
        case .list: [.string(string)]
        case .map, .object, .null: nil
        }
    }
}

extension Value {
    /// Reads text as a value of a declared type, by the rules for the text of URLs.
    ///
    /// - Returns: `nil` if the text is not such a value, or if text of a URL is not converted to that type.
    package init?(text: String, as kind: Kind) {
        guard kind != .list, kind != .any, let value = text.withRawText({ $0.value(of: kind) }) else { return nil }
        self = value
    }
}
