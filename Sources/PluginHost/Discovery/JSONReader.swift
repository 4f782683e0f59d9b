internal import CPluginABI
internal import PluginABI

/// Reads a JSON text (RFC 8259) into a value, in one pass: every module has a manifest, and Foundation's decoder tries
/// for each value in it one type after the other.
///
/// Numbers that are whole and fit are ints. Of a key that comes twice the first one counts.
struct JSONReader {
    /// What is wrong, and where: the rest of a sentence that begins with what the text is.
    struct Failure: Error {
        let message: String
    }

    private let bytes: UnsafeBufferPointer<UInt8>
    private var index = 0
    private var depth = 0

    /// - Parameter text: UTF-8, checked; used during the call only.
    static func read(_ text: UnsafeRawBufferPointer) throws(Failure) -> Value {
        var reader = JSONReader(bytes: text.bindMemory(to: UInt8.self))
        if text.starts(with: [0xEF, 0xBB, 0xBF]) { reader.index = 3 }
        let value = try reader.value()
        guard reader.next() == nil else { throw reader.failure("there is something behind its end") }
        return value
    }

    private init(bytes: UnsafeBufferPointer<UInt8>) { self.bytes = bytes }

    private func failure(_ what: String) -> Failure {
        Failure(message: "is no JSON: \(what), at character \(index).")
    }

    // MARK: Values

    private mutating func value() throws(Failure) -> Value {
        guard let first = next() else { throw failure("a value is missing") }
        switch first {
        case UInt8(ascii: "\""): return .string(try string())
        case UInt8(ascii: "{"): return .map(try map())
        case UInt8(ascii: "["): return .list(try list())
        case UInt8(ascii: "t"): return try word("true", .bool(true))
        case UInt8(ascii: "f"): return try word("false", .bool(false))
        case UInt8(ascii: "n"): return try word("null", .null)
        case UInt8(ascii: "-"), UInt8(ascii: "0")...UInt8(ascii: "9"): return try number()
        default: throw failure("a value is missing")
        }
    }

    private mutating func word(_ word: StaticString, _ value: Value) throws(Failure) -> Value {
        let isThere = word.withUTF8Buffer { bytes[index...].starts(with: $0) }
        guard isThere else { throw failure("a value is missing") }
        index += word.utf8CodeUnitCount
        return value
    }

    private mutating func list() throws(Failure) -> [Value] {
        try descend()
        var values: [Value] = []
        if take(UInt8(ascii: "]")) { return values }
        repeat { values.append(try value()) } while take(UInt8(ascii: ","))
        try ascend(UInt8(ascii: "]"))
        return values
    }

    private mutating func map() throws(Failure) -> [String: Value] {
        try descend()
        var entries: [String: Value] = [:]
        if take(UInt8(ascii: "}")) { return entries }
        repeat {
            guard next() == UInt8(ascii: "\"") else { throw failure("a key is missing") }
            let key = try string()
            guard take(UInt8(ascii: ":")) else { throw failure("a “:” is missing") }
            let value = try value()
            if entries[key] == nil { entries[key] = value }
        } while take(UInt8(ascii: ","))
        try ascend(UInt8(ascii: "}"))
        return entries
    }

    /// Takes the bracket that opens a list or a map.
    private mutating func descend() throws(Failure) {
        depth += 1
        guard depth <= Int(PLUGIN_DEPTH_MAX) else {
            throw Failure(message: "is nested more than \(PLUGIN_DEPTH_MAX) levels deep, at byte \(index).")
        }
        index += 1
    }

    private mutating func ascend(_ bracket: UInt8) throws(Failure) {
        guard take(bracket) else { throw failure("a “,” or “\(UnicodeScalar(bracket))” is missing") }
        depth -= 1
    }

    // MARK: Numbers

    private mutating func number() throws(Failure) -> Value {
        let start = index
        _ = accept(UInt8(ascii: "-"))
        if !accept(UInt8(ascii: "0")) { try digits() }
        let wholeEnd = index
        if accept(UInt8(ascii: ".")) { try digits() }
        if accept(UInt8(ascii: "e")) || accept(UInt8(ascii: "E")) {
            if !accept(UInt8(ascii: "+")) { _ = accept(UInt8(ascii: "-")) }
            try digits()
        }
        let text = String(decoding: bytes[start..<index], as: UTF8.self)
        if index == wholeEnd, let whole = Int(text) { return .int(whole) }
        guard let number = Double(text), number.isFinite else { throw failure("a number is too large") }
        return Int(exactly: number).map(Value.int) ?? .double(number)
    }

    private mutating func digits() throws(Failure) {
        let start = index
        while index < bytes.count, (0x30...0x39).contains(bytes[index]) { index += 1 }
        guard index > start else { throw failure("a digit is missing") }
    }

    // MARK: Strings

    private mutating func string() throws(Failure) -> String {
        index += 1
        let start = index
        while index < bytes.count {
            switch bytes[index] {
            case UInt8(ascii: "\""):
                index += 1
                return String(decoding: bytes[start..<(index - 1)], as: UTF8.self)
            case UInt8(ascii: "\\"): return try escapedString(from: start)
            case 0..<0x20: throw failure("a control character is not escaped")
            default: index += 1
            }
        }
        throw failure("a string has no end")
    }

    /// Goes on with a string at its first escape.
    private mutating func escapedString(from start: Int) throws(Failure) -> String {
        var text = Array(bytes[start..<index])
        while index < bytes.count {
            let byte = bytes[index]
            switch byte {
            case UInt8(ascii: "\""):
                index += 1
                return String(decoding: text, as: UTF8.self)
            case UInt8(ascii: "\\"):
                index += 1
                text.append(contentsOf: UTF8.encode(try escape())!)
            case 0..<0x20: throw failure("a control character is not escaped")
            default:
                text.append(byte)
                index += 1
            }
        }
        throw failure("a string has no end")
    }

    private mutating func escape() throws(Failure) -> UnicodeScalar {
        guard index < bytes.count else { throw failure("a string has no end") }
        index += 1
        switch bytes[index - 1] {
        case UInt8(ascii: "\""): return "\""
        case UInt8(ascii: "\\"): return "\\"
        case UInt8(ascii: "/"): return "/"
        case UInt8(ascii: "b"): return "\u{8}"
        case UInt8(ascii: "f"): return "\u{C}"
        case UInt8(ascii: "n"): return "\n"
        case UInt8(ascii: "r"): return "\r"
        case UInt8(ascii: "t"): return "\t"
        case UInt8(ascii: "u"):
            let first = try codeUnit()
            if let scalar = UnicodeScalar(UInt32(first)) { return scalar }
            guard UTF16.isLeadSurrogate(first), accept(UInt8(ascii: "\\")), accept(UInt8(ascii: "u")),
                case let second = try codeUnit(), UTF16.isTrailSurrogate(second)
            else { throw failure("an escape stands for half a character") }
            return UnicodeScalar(0x10000 + (UInt32(first & 0x3FF) << 10 | UInt32(second & 0x3FF)))!
        default: throw failure("an escape is unknown")
        }
    }

    private mutating func codeUnit() throws(Failure) -> UInt16 {
        let digits = bytes[index..<min(index + 4, bytes.count)]
        guard digits.count == 4, digits.allSatisfy({ UnicodeScalar($0).properties.isASCIIHexDigit }),
            let unit = UInt16(String(decoding: digits, as: UTF8.self), radix: 16)
        else { throw failure("four hexadecimal digits are missing") }
        index += 4
        return unit
    }

    // MARK: Bytes

    /// The next byte that is no white space; it is not taken.
    private mutating func next() -> UInt8? {
        while index < bytes.count {
            let byte = bytes[index]
            guard byte == 0x20 || byte == 0x0A || byte == 0x0D || byte == 0x09 else { return byte }
            index += 1
        }
        return nil
    }

    /// Takes a byte, and white space before it, if it is there.
    private mutating func take(_ byte: UInt8) -> Bool {
        guard next() == byte else { return false }
        index += 1
        return true
    }

    /// Takes a byte if it is the very next one.
    private mutating func accept(_ byte: UInt8) -> Bool {
        guard index < bytes.count, bytes[index] == byte else { return false }
        index += 1
        return true
    }
}
