import PluginABI

/// Builds Swift source code.
struct SwiftSource {
    private(set) var text = ""
    private var depth = 0

    /// Adds a line; an empty one has no indentation.
    mutating func line(_ line: String = "") {
        if !line.isEmpty { text += String(repeating: "    ", count: depth) + line }
        text += "\n"
    }

    /// Adds a block in braces.
    mutating func block(_ head: String, _ body: (inout SwiftSource) -> Void) {
        line(head + " {")
        depth += 1
        body(&self)
        depth -= 1
        line("}")
    }

    /// Adds a documented declaration, with a block if it has a body. An empty line precedes it unless it is the first
    /// in a block.
    mutating func declare(
        _ head: String, _ summary: String, parameters: [(String, String)] = [], notes: [String] = [],
        isDiscardable: Bool = false, _ body: ((inout SwiftSource) -> Void)? = nil
    ) {
        if !text.hasSuffix("{\n") { text += "\n" }
        document(summary, parameters: parameters, notes: notes)
        if isDiscardable { line("@discardableResult") }
        if let body { block(head, body) } else { line(head) }
    }

    /// Adds a documentation comment, which no text can end early.
    ///
    /// - Parameter parameters: The names of parameters, and their descriptions.
    mutating func document(_ summary: String, parameters: [(String, String)] = [], notes: [String] = []) {
        var lines = Self.lines(summary)
        let described = parameters.map { ($0.0, Self.lines($0.1)) }.filter { !$0.1.isEmpty }
        if !described.isEmpty {
            if !lines.isEmpty { lines.append("") }
            lines.append("- Parameters:")
            for (name, text) in described {
                lines.append("  - \(name): \(text[0])")
                lines += text.dropFirst().map { "    " + $0 }
            }
        }
        for note in notes {
            if !lines.isEmpty { lines.append("") }
            lines += Self.lines(note)
        }
        for text in lines { line(text.isEmpty ? "///" : "/// " + text) }
    }

    /// Returns the lines of a text, with characters that editors show misleadingly replaced by spaces.
    private static func lines(_ text: String) -> [String] {
        let normal = text.replacing("\r\n", with: "\n")
        return normal.split(whereSeparator: \.isNewline).map { line in
            String(String.UnicodeScalarView(line.unicodeScalars.map { isInvisible($0) ? " " : $0 }))
        }
    }

    /// Returns whether a character is a control character, or changes the direction of writing.
    private static func isInvisible(_ scalar: UnicodeScalar) -> Bool {
        switch scalar.value {
        case 0..<0x20, 0x7F..<0xA0, 0x200E...0x200F, 0x202A...0x202E, 0x2066...0x2069, 0xFEFF: true
        default: false
        }
    }

    // MARK: Literals

    /// Returns a text as a string literal.
    static func literal(_ text: String) -> String {
        var literal = "\""
        for scalar in text.unicodeScalars {
            switch scalar {
            case "\"": literal += "\\\""
            case "\\": literal += "\\\\"
            case "\n": literal += "\\n"
            case "\t": literal += "\\t"
            default:
                if isInvisible(scalar) || (0x2028...0x2029).contains(scalar.value) {
                    literal += "\\u{" + String(scalar.value, radix: 16) + "}"
                } else {
                    literal.unicodeScalars.append(scalar)
                }
            }
        }
        return literal + "\""
    }

    /// Returns a value as a literal of its Swift type.
    static func literal(_ value: Value) -> String {
        switch value {
        case .null, .object: "nil"
        case .bool(let flag): String(flag)
        case .int(let number): String(number)
        case .double(let number): String(number)
        case .string(let text): literal(text)
        case .bytes(let bytes): "[" + bytes.map(String.init).joined(separator: ", ") + "]"
        case .list(let values): "[" + values.map(literal).joined(separator: ", ") + "]"
        case .map(let entries):
            dictionary(entries.sorted { $0.key < $1.key }.map { "\(literal($0.key)): \(literal($0.value))" })
        }
    }

    /// Returns a dictionary literal.
    static func dictionary(_ entries: [String]) -> String {
        entries.isEmpty ? "[:]" : "[\(entries.joined(separator: ", "))]"
    }
}

extension Value.Kind {
    /// The Swift type of a value of this kind.
    var swiftType: String {
        switch self {
        case .bool: "Bool"
        case .int: "Int"
        case .double: "Double"
        case .string: "String"
        case .bytes: "Bytes"
        case .list: "[Value]"
        case .map: "[String: Value]"
        case .object: "Object"
        case .any: "Value"
        case .null: "Void"
        }
    }

    /// Returns an expression that makes a `Value` from an expression of this kind's Swift type.
    func wrapped(_ expression: String) -> String { self == .any ? expression : ".\(rawValue)(\(expression))" }
}
