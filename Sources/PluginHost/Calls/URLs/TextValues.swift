// Conversion of a URL's text to declared numbers and booleans: nothing is lost, and nothing is guessed.

import PluginABI
import PluginFile

extension RawText {
    /// The text as an integer: decimal digits with or without a sign, and with a point or an exponent if the number is
    /// whole (`3.0`, `1e3`). `nil` for any other text, and for numbers that do not fit into 64 bits.
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
            // Computed as a negative number, because there is one more negative number than positive ones.
            let (shifted, isTooLarge) = number.multipliedReportingOverflow(by: 10)
            let (sum, isTooLargeNow) = shifted.subtractingReportingOverflow(Int64(digit))
            if isTooLarge || isTooLargeNow { return nil }
            number = sum
            index += 1
        }
        if isNegative { return number }
        return number == .min ? nil : -number
    }

    /// The text as an integer written with a point or an exponent. If it has an exponent, its magnitude can be at most
    /// 2^53, up to which a double represents every integer exactly.
    private var wholeNumber: Int64? {
        if let point = firstIndex(of: UInt8(ascii: ".")), self[(point + 1)...].allSatisfy({ $0 == UInt8(ascii: "0") }),
            point + 1 < count
        {
            return part(0, point).integer
        }
        guard let number, number.magnitude <= 0x1p53 else { return nil }
        return Int64(exactly: number)
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

extension RawText {
    /// The text as a value of a type; `nil` if it is none.
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
