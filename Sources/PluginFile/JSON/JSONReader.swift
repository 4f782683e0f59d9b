import PluginABI

/// Reads a JSON text (RFC 8259) into a value, in one pass and in linear time for any text. It reads all JSON that the
/// host has not written itself.
///
/// A number that is whole and fits into 64 bits is an int. This is decided from its digits: `1e2` and `3.0` are ints.
package struct JSONReader {
    /// The rules for a text.
    package struct Rules {
        /// The maximum depth of nested lists and maps.
        var depth = Int(PLUGIN_DEPTH_MAX)
        /// Whether the text is a file that people write. Then an object with a duplicate name is refused; otherwise the
        /// first entry counts.
        var isFile = false
        /// Whether a number is refused if its nearest double is a 64-bit whole number, but the number itself is not.
        var keepsWholeNumbers = false

        /// The rules for a value that passes between host and module.
        package static let value = Rules()
        /// The rules for a file that people write.
        package static let file = Rules(isFile: true)
        /// The rules for parameters from another program. Lines and columns are stated as for a file.
        package static let parameters = Rules(isFile: true, keepsWholeNumbers: true)
        /// The rules for a message between programs. It wraps values, which may have the maximum depth, in a few more
        /// objects.
        package static let message = Rules(depth: Int(PLUGIN_DEPTH_MAX) + 8)
    }

    private let bytes: UnsafeBufferPointer<UInt8>
    private let rules: Rules
    private var index = 0
    private var depth = 0

    /// Reads a text.
    ///
    /// - Parameter text: The text, which must be valid UTF-8. Used only during the call.
    /// - Throws: An error that states what is wrong with the text, and where.
    static func read(_ text: UnsafeRawBufferPointer, _ rules: Rules = .value) throws(MalformedText) -> Value {
        var reader = JSONReader(bytes: text.bindMemory(to: UInt8.self), rules: rules)
        if text.starts(with: [0xEF, 0xBB, 0xBF]) { reader.index = 3 }
        let value = try reader.value()
        guard reader.next() == nil else { throw reader.failure("there is text after the value") }
        return value
    }

    private func failure(_ what: String) -> MalformedText {
        MalformedText("is not valid JSON: \(what),", at: index)
    }

    // MARK: Values

    private mutating func value() throws(MalformedText) -> Value {
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

    private mutating func word(_ word: StaticString, _ value: Value) throws(MalformedText) -> Value {
        let isThere = word.withUTF8Buffer { bytes[index...].starts(with: $0) }
        guard isThere else { throw failure("a value is missing") }
        index += word.utf8CodeUnitCount
        return value
    }

    private mutating func list() throws(MalformedText) -> [Value] {
        try descend()
        var values: [Value] = []
        if next() != UInt8(ascii: "]") {
            repeat { values.append(try value()) } while try continues(before: UInt8(ascii: "]"))
        }
        try ascend(UInt8(ascii: "]"))
        return values
    }

    private mutating func map() throws(MalformedText) -> [String: Value] {
        try descend()
        var entries: [String: Value] = [:]
        if next() != UInt8(ascii: "}") {
            entries.reserveCapacity(3)  // Most objects have few entries.
            repeat {
                guard next() == UInt8(ascii: "\"") else { throw failure("a name is missing") }
                let start = index
                let name = try string()
                guard take(UInt8(ascii: ":")) else { throw failure("a “:” is missing") }
                let value = try value()
                let count = entries.count
                Self.insert(&entries[name, default: value])
                if entries.count == count, rules.isFile {
                    throw MalformedText(
                        "has the name “\(name.shortened)” twice,", at: start, advice: " Use each name once.")
                }
            } while try continues(before: UInt8(ascii: "}"))
        }
        try ascend(UInt8(ascii: "}"))
        return entries
    }

    /// Accessing an entry with a default inserts it if there is none. Unlike a look-up before the insertion, this hashes
    /// the name once.
    @inline(__always)
    private static func insert(_ entry: inout Value) {}

    /// Reads the comma before another element of a list or a map, if there is one.
    private mutating func continues(before end: UInt8) throws(MalformedText) -> Bool {
        _ = next()
        let comma = index
        guard take(UInt8(ascii: ",")) else { return false }
        guard next() != end else {
            throw MalformedText("is not valid JSON: a “,” follows the last element,", at: comma)
        }
        return true
    }

    /// Reads the bracket that opens a list or a map.
    private mutating func descend() throws(MalformedText) {
        depth += 1
        guard depth <= rules.depth else {
            throw MalformedText("is nested more than \(rules.depth) levels deep,", at: index)
        }
        index += 1
    }

    private mutating func ascend(_ bracket: UInt8) throws(MalformedText) {
        guard take(bracket) else { throw failure("a “,” or “\(UnicodeScalar(bracket))” is missing") }
        depth -= 1
    }

    // MARK: Numbers

    private mutating func number() throws(MalformedText) -> Value {
        let start = index
        _ = accept(UInt8(ascii: "-"))
        if !accept(UInt8(ascii: "0")) { try digits() }
        if accept(UInt8(ascii: ".")) { try digits() }
        if accept(UInt8(ascii: "e")) || accept(UInt8(ascii: "E")) {
            if !accept(UInt8(ascii: "+")) { _ = accept(UInt8(ascii: "-")) }
            try digits()
        }
        let text = bytes[start..<index]
        if let number = DecimalNumber.wholeNumber(text) { return .int(number) }
        guard let number = Double(String(decoding: text, as: UTF8.self)), number.isFinite else {
            throw failure("a number is too large")
        }
        if rules.keepsWholeNumbers, Int(exactly: number) != nil {
            throw failure("a number has more digits than fit into 64 bits")
        }
        return .double(number)
    }

    private mutating func digits() throws(MalformedText) {
        let start = index
        while index < bytes.count, bytes[index].isDigit { index += 1 }
        guard index > start else { throw failure("a digit is missing") }
    }

    // MARK: Strings

    private mutating func string() throws(MalformedText) -> String {
        index += 1
        let start = index
        // `text` contains everything up to and including the last escape; the bytes after it begin at `rest`.
        var (text, rest): ([UInt8], Int) = ([], start)
        while index < bytes.count {
            switch bytes[index] {
            case UInt8(ascii: "\""):
                if !text.isEmpty { text += bytes[rest..<index] }
                let string =
                    text.isEmpty
                    ? String(decoding: bytes[rest..<index], as: UTF8.self) : String(decoding: text, as: UTF8.self)
                index += 1
                try CombiningMarks.check(string, at: start)
                return string
            case UInt8(ascii: "\\"):
                text += bytes[rest..<index]
                index += 1
                text.append(contentsOf: UTF8.encode(try escape())!)  // Every scalar has an encoding.
                rest = index
            case 0..<0x20: throw failure("a control character is not escaped")
            default: index += 1
            }
        }
        throw failure("a string is not terminated")
    }

    private mutating func escape() throws(MalformedText) -> UnicodeScalar {
        guard index < bytes.count else { throw failure("a string is not terminated") }
        index += 1
        let byte = bytes[index - 1]
        switch byte {
        case UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "/"): return UnicodeScalar(byte)
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
            else { throw failure("an escape is half of a surrogate pair") }
            return UnicodeScalar(0x10000 + (UInt32(first & 0x3FF) << 10 | UInt32(second & 0x3FF)))!
        default: throw failure("an escape is unknown")
        }
    }

    private mutating func codeUnit() throws(MalformedText) -> UInt16 {
        var unit: UInt16 = 0
        for offset in 0..<4 {
            guard index + offset < bytes.count,
                let digit = Character(UnicodeScalar(bytes[index + offset])).hexDigitValue
            else { throw failure("four hexadecimal digits are missing") }
            unit = unit << 4 | UInt16(digit)
        }
        index += 4
        return unit
    }

    // MARK: Bytes

    /// Skips white space, and returns the next byte without reading it.
    private mutating func next() -> UInt8? {
        while index < bytes.count {
            let byte = bytes[index]
            guard byte == 0x20 || byte == 0x0A || byte == 0x0D || byte == 0x09 else { return byte }
            index += 1
        }
        return nil
    }

    /// Skips white space, and reads the next byte if it is this one. Returns whether it was.
    private mutating func take(_ byte: UInt8) -> Bool {
        guard next() == byte else { return false }
        index += 1
        return true
    }

    /// Reads the next byte if it is this one. Returns whether it was.
    private mutating func accept(_ byte: UInt8) -> Bool {
        guard index < bytes.count, bytes[index] == byte else { return false }
        index += 1
        return true
    }
}
