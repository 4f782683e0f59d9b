import PluginABI

/// Reads a property list in XML into a value, in one pass and in linear time.
///
/// Foundation's decoder needs seconds to read a file of a few megabytes, and never finishes if a name consists of
/// combining marks. This reader accepts the format that `plutil -convert xml1` writes. It refuses dates, because no
/// value can represent them, and duplicate names.
struct PropertyListReader {
    private let bytes: UnsafeBufferPointer<UInt8>
    private var index = 0
    private var depth = 0

    private struct Tag {
        let name: String
        var isClosing = false
        /// Whether the element is empty: `<true/>`.
        var isEmpty = false
    }

    /// Reads a text.
    ///
    /// - Parameter text: The text, which must be valid UTF-8. Used only during the call.
    /// - Throws: An error that states what is wrong with the text, and where.
    static func read(_ text: UnsafeRawBufferPointer) throws(MalformedText) -> Value {
        if text.starts(with: "bplist".utf8) {
            throw MalformedText(
                "is a binary property list, but must be in XML. Convert it: 'plistutil -i FILE -o FILE', or on macOS "
                    + "'plutil -convert xml1 FILE'.")
        }
        var reader = PropertyListReader(bytes: text.bindMemory(to: UInt8.self))
        if text.starts(with: [0xEF, 0xBB, 0xBF]) { reader.index = 3 }
        var tag = try reader.tag()
        let isWrapped = tag.name == "plist" && !tag.isClosing && !tag.isEmpty
        if isWrapped { tag = try reader.tag() }
        let value = try reader.value(tag)
        if isWrapped { try reader.close("plist") }
        try reader.skipMisc()
        guard reader.index == reader.bytes.count else { throw reader.failure("there is text after its end") }
        return value
    }

    private func failure(_ what: String) -> MalformedText {
        MalformedText("is not a valid property list in XML: \(what),", at: index)
    }

    // MARK: Values

    private mutating func value(_ tag: Tag) throws(MalformedText) -> Value {
        guard !tag.isClosing else { throw failure("a value is missing before </\(tag.name.shortened)>") }
        switch tag.name {
        case "dict": return .map(try map(tag))
        case "array": return .list(try list(tag))
        case "string": return .string(try text(of: tag))
        case "integer": return try read(tag, Self.integer, else: "an <integer> is not a 64-bit integer")
        case "real": return try read(tag, Self.real, else: "a <real> is not a finite number")
        case "data": return try read(tag, Self.data, else: "a <data> is not base64")
        case "true", "false":
            if !tag.isEmpty { try close(tag.name) }
            return .bool(tag.name == "true")
        case "date": throw failure("it contains a date, which is not supported")
        default: throw failure("the element <\(tag.name.shortened)> is not allowed here")
        }
    }

    private mutating func map(_ tag: Tag) throws(MalformedText) -> [String: Value] {
        if tag.isEmpty { return [:] }
        try descend()
        defer { depth -= 1 }
        var entries: [String: Value] = [:]
        while case let tag = try self.tag(), !(tag.isClosing && tag.name == "dict") {
            guard tag.name == "key", !tag.isClosing else { throw failure("a <key> is missing in a <dict>") }
            let name = try text(of: tag)
            let value = try value(self.tag())
            guard entries.updateValue(value, forKey: name) == nil else {
                throw failure("the key “\(name.shortened)” occurs twice in a <dict>")
            }
        }
        return entries
    }

    private mutating func list(_ tag: Tag) throws(MalformedText) -> [Value] {
        if tag.isEmpty { return [] }
        try descend()
        defer { depth -= 1 }
        var values: [Value] = []
        while case let tag = try self.tag(), !(tag.isClosing && tag.name == "array") { values.append(try value(tag)) }
        return values
    }

    private mutating func descend() throws(MalformedText) {
        depth += 1
        guard depth <= Int(PLUGIN_DEPTH_MAX) else {
            throw MalformedText("is nested more than \(PLUGIN_DEPTH_MAX) levels deep,", at: index)
        }
    }

    private mutating func read(
        _ tag: Tag, _ convert: (String) -> Value?, else what: String
    ) throws(MalformedText) -> Value {
        guard let value = convert(try text(of: tag)) else { throw failure(what) }
        return value
    }

    private static func integer(_ text: String) -> Value? {
        let text = text.trimmed
        let isHexadecimal = text.hasPrefix("0x") || text.hasPrefix("0X")
        return (isHexadecimal ? Int(text.dropFirst(2), radix: 16) : Int(text)).map(Value.int)
    }

    private static func real(_ text: String) -> Value? {
        Double(text.trimmed).flatMap { $0.isFinite ? .double($0) : nil }
    }

    private static func data(_ text: String) -> Value? {
        Bytes(base64: String(decoding: text.utf8.filter { !$0.isBlank }, as: UTF8.self)).map(Value.bytes)
    }

    // MARK: Text

    /// Reads the text between a tag and its closing tag, with entities replaced.
    private mutating func text(of tag: Tag) throws(MalformedText) -> String {
        if tag.isEmpty { return "" }
        let start = index
        var text: [UInt8] = []
        while index < bytes.count {
            switch bytes[index] {
            case UInt8(ascii: "<"):
                if take("<!--") {
                    try skip(past: "-->")
                } else if take("<![CDATA[") {
                    let start = index
                    try skip(past: "]]>")
                    text += bytes[start..<(index - 3)]
                } else {
                    try close(tag.name)
                    let string = String(decoding: text, as: UTF8.self)
                    try CombiningMarks.check(string, at: start)
                    return string
                }
            case UInt8(ascii: "&"): text.append(contentsOf: UTF8.encode(try entity())!)  // Every scalar has one.
            case let byte:
                text.append(byte)
                index += 1
            }
        }
        throw failure("</\(tag.name)> is missing")
    }

    private static let entities: [(name: StaticString, scalar: UnicodeScalar)] = [
        ("&lt;", "<"), ("&gt;", ">"), ("&amp;", "&"), ("&quot;", "\""), ("&apos;", "'"),
    ]

    private mutating func entity() throws(MalformedText) -> UnicodeScalar {
        for entity in Self.entities where take(entity.name) { return entity.scalar }
        guard take("&#") else { throw failure("an entity is unknown") }
        let radix: UInt32 = take("x") ? 16 : 10
        var number: UInt32 = 0
        while index < bytes.count, let digit = Character(UnicodeScalar(bytes[index])).hexDigitValue, digit < radix {
            number = min(number * radix + UInt32(digit), 0x11_0000)
            index += 1
        }
        guard take(";"), number >= 0x20 || number == 0x09 || number == 0x0A || number == 0x0D,
            let scalar = UnicodeScalar(number)
        else { throw failure("a numeric entity does not denote a valid character") }
        return scalar
    }

    // MARK: Tags

    /// Reads the next tag, and white space, comments and instructions before it.
    private mutating func tag() throws(MalformedText) -> Tag {
        try skipMisc()
        guard take("<") else { throw failure("a tag is missing") }
        let isClosing = take("/")
        let start = index
        while index < bytes.count, case let letter = bytes[index] | 0x20, letter >= 0x61, letter <= 0x7A { index += 1 }
        guard index > start else { throw failure("a tag has no name") }
        let name = String(decoding: bytes[start..<index], as: UTF8.self)
        var quote: UInt8?
        while index < bytes.count {
            let byte = bytes[index]
            index += 1
            if quote != nil {
                if byte == quote { quote = nil }
            } else if byte == UInt8(ascii: "\"") || byte == UInt8(ascii: "'") {
                quote = byte
            } else if byte == UInt8(ascii: ">") {
                let isEmpty = !isClosing && bytes[index - 2] == UInt8(ascii: "/")
                return Tag(name: name, isClosing: isClosing, isEmpty: isEmpty)
            } else if byte == UInt8(ascii: "<") {
                break
            }
        }
        throw failure("a tag is not terminated")
    }

    private mutating func close(_ name: String) throws(MalformedText) {
        let tag = try tag()
        guard tag.isClosing, tag.name == name else { throw failure("</\(name)> is missing") }
    }

    private mutating func skipMisc() throws(MalformedText) {
        while index < bytes.count {
            if bytes[index].isBlank {
                index += 1
            } else if take("<!--") {
                try skip(past: "-->")
            } else if take("<?") {
                try skip(past: "?>")
            } else if take("<!DOCTYPE") {
                let start = index
                try skip(past: ">")
                guard !bytes[start..<index].contains(UInt8(ascii: "[")) else {
                    throw failure("its document type declares elements or entities of its own")
                }
            } else {
                return
            }
        }
    }

    // MARK: Bytes

    private mutating func skip(past end: StaticString) throws(MalformedText) {
        while index < bytes.count {
            if take(end) { return }
            index += 1
        }
        throw failure("“\(end)” is missing")
    }

    /// Reads the word if the next bytes are this word. Returns whether they were.
    private mutating func take(_ word: StaticString) -> Bool {
        guard word.withUTF8Buffer({ bytes[index...].starts(with: $0) }) else { return false }
        index += word.utf8CodeUnitCount
        return true
    }
}
