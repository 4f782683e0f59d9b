import PluginABI

/// A parser that divides a pattern into parts.
///
/// The tokens and the grammar are those of the WHATWG URL Pattern standard ("parse a pattern string"), for one
/// component. Unlike in the standard, `%XX` is decoded, so that different spellings of a character are equal.
struct PatternParser {
    private enum Token: Hashable {
        case open, close
        case expression([UInt32])
        case name(String)
        /// One or more characters that match themselves.
        case text(ArraySlice<UInt32>)
        case escaped(UInt32)
        /// `?` or `+`.
        case modifier(PatternPart.Modifier)
        case asterisk
        case end
    }

    private let pattern: String
    private let delimiter: UInt32?
    private var tokens: [(token: Token, position: Int)] = []
    private var index = 0
    private var pending: [UInt32] = []
    private var parts: [PatternPart] = []
    /// The names of all groups so far, including those before this component.
    private var names: Set<String>
    private var nextNumber: Int

    /// Parses one component of a pattern.
    ///
    /// - Parameters:
    ///   - text: The component: a path or a host.
    ///   - offset: The offset of the component in `pattern`, in scalars, for messages.
    ///   - delimiter: The character that belongs to the group after it and is repeated with it: the slash of a path.
    ///   - earlierNames: The names of groups before this component, including numbers.
    /// - Throws: `invalidPattern`, with the position.
    static func parse(
        _ text: [UInt32], at offset: Int = 0, of pattern: String, delimiter: UInt32?, earlierNames: [String] = []
    ) throws(PluginError) -> [PatternPart] {
        var parser = PatternParser(pattern: pattern, delimiter: delimiter, earlierNames: earlierNames)
        try parser.tokenize(text, offset)
        try parser.parse()
        return parser.parts
    }

    private init(pattern: String, delimiter: UInt32?, earlierNames: [String]) {
        (self.pattern, self.delimiter) = (pattern, delimiter)
        names = Set(earlierNames)
        nextNumber = earlierNames.count { $0.allSatisfy(\.isNumber) }
    }

    // MARK: Tokens

    private mutating func tokenize(_ text: [UInt32], _ offset: Int) throws(PluginError) {
        var index = 0
        while index < text.count {
            let position = offset + index
            switch UnicodeScalar(text[index]) {
            case "*": tokens.append((.asterisk, position))
            case "+": tokens.append((.modifier(.oneOrMore), position))
            case "?": tokens.append((.modifier(.optional), position))
            case "{": tokens.append((.open, position))
            case "}": tokens.append((.close, position))
            case "\\":
                guard index + 1 < text.count else { throw .invalidPattern(pattern, at: position, "a “\\” at its end") }
                index += 1
                tokens.append((.escaped(text[index]), position))
            case ":":
                var end = index + 1
                while end < text.count, Self.isName(text[end], first: end == index + 1) { end += 1 }
                guard end > index + 1 else {
                    throw .invalidPattern(pattern, at: position, "a “:” without a name (write “\\:” for the character)")
                }
                tokens.append((.name(PathScalars.text(text[(index + 1)..<end])), position))
                index = end - 1
            case "(":
                let end = try endOfExpression(text, index, offset)
                tokens.append((.expression(Array(text[(index + 1)..<end])), position))
                index = end
            case "%":
                let end = try decodeEscapes(text, index, offset)
                index = end - 1
            default:
                var end = index + 1
                while end < text.count, Self.isLiteral(text[end]) { end += 1 }
                tokens.append((.text(text[index..<end]), position))
                index = end - 1
            }
            index += 1
        }
        tokens.append((.end, offset + text.count))
    }

    /// Returns whether a character matches itself.
    static func isLiteral(_ scalar: UInt32) -> Bool {
        switch scalar {
        // * + ? { } \ : ( %
        case 0x2A, 0x2B, 0x3F, 0x7B, 0x7D, 0x5C, 0x3A, 0x28, 0x25: false
        default: true
        }
    }

    /// Adds the decoded escapes from `start` on, and returns where they end.
    private mutating func decodeEscapes(_ text: [UInt32], _ start: Int, _ offset: Int) throws(PluginError) -> Int {
        var end = start
        while end < text.count, text[end] == 0x25 { end = min(end + 3, text.count) }
        do throws(PluginError) {
            let decoded = try PathScalars.decode(PathScalars.text(text[start..<end]))
            tokens.append((.text(decoded[...]), offset + start))
        } catch {
            throw .invalidPattern(
                pattern, at: offset + start, "an escape that does not denote a character (write “\\%” for the sign)")
        }
        return end
    }

    /// Returns the index of the parenthesis that closes the one at `start`.
    private func endOfExpression(_ text: [UInt32], _ start: Int, _ offset: Int) throws(PluginError) -> Int {
        var depth = 1
        var index = start + 1
        while index < text.count {
            switch UnicodeScalar(text[index]) {
            case "\\": index += 1
            case ")":
                depth -= 1
                if depth == 0 {
                    guard index > start + 1 else {
                        throw .invalidPattern(pattern, at: offset + start, "an empty group “()”")
                    }
                    return index
                }
            case "(": depth += 1
            case let scalar? where !scalar.isASCII:
                throw .invalidPattern(
                    pattern, at: offset + index, "a character in “(…)” that is not ASCII: write \\u{…}")
            default: break
            }
            index += 1
        }
        throw .invalidPattern(pattern, at: offset + start, "a “(” without a matching “)”")
    }

    /// Returns whether a character can be part of a name, by the rules for JavaScript identifiers.
    private static func isName(_ value: UInt32, first: Bool) -> Bool {
        guard let scalar = UnicodeScalar(value) else { return false }
        if scalar == "_" || scalar == "$" { return true }
        if first { return scalar.properties.isIDStart }
        return scalar.properties.isIDContinue || value == 0x200C || value == 0x200D
    }

    // MARK: Grammar

    private mutating func parse() throws(PluginError) {
        while true {
            if case .text(let text) = tokens[index].token {
                index += 1
                pending += text
                if text.last == delimiter, let group = takeGroup() {
                    let delimiter = pending.removeLast()
                    addPending()
                    try add([delimiter], group, [], takeModifier())
                }
            } else if let group = takeGroup() {
                addPending()
                try add([], group, [], takeModifier())
            } else if let fixed = takeEscaped() {
                pending.append(fixed)
            } else if take(.open) {
                let start = index - 1
                let prefix = takeText()
                let group = takeGroup()
                let suffix = takeText()
                guard take(.close) else {
                    throw .invalidPattern(pattern, at: tokens[start].position, "a “{” without a matching “}”")
                }
                try add(prefix, group, suffix, takeModifier())
            } else {
                addPending()
                guard tokens[index].token == .end else {
                    throw .invalidPattern(
                        pattern, at: tokens[index].position, "a “?”, “+” or “}” with nothing before it")
                }
                return
            }
        }
    }

    private struct Group {
        var name: String?
        var expression: (text: [UInt32], position: Int)?
        var isAnything: Bool
        let position: Int
    }

    private mutating func takeGroup() -> Group? {
        var group = Group(name: nil, expression: nil, isAnything: false, position: tokens[index].position)
        if case .name(let name) = tokens[index].token {
            group.name = name
            index += 1
        }
        if case .expression(let text) = tokens[index].token {
            group.expression = (text, tokens[index].position + 1)
            index += 1
        } else if group.name == nil, take(.asterisk) {
            group.isAnything = true
        }
        return group.name == nil && group.expression == nil && !group.isAnything ? nil : group
    }

    private mutating func take(_ token: Token) -> Bool {
        guard tokens[index].token == token else { return false }
        index += 1
        return true
    }

    private mutating func takeEscaped() -> UInt32? {
        guard case .escaped(let scalar) = tokens[index].token else { return nil }
        index += 1
        return scalar
    }

    private mutating func takeText() -> [UInt32] {
        var text: [UInt32] = []
        while true {
            if case .text(let plain) = tokens[index].token {
                index += 1
                text += plain
            } else if let scalar = takeEscaped() {
                text.append(scalar)
            } else {
                return text
            }
        }
    }

    private mutating func takeModifier() -> PatternPart.Modifier {
        if case .modifier(let modifier) = tokens[index].token {
            index += 1
            return modifier
        }
        return take(.asterisk) ? .zeroOrMore : .once
    }

    private mutating func addPending() {
        guard !pending.isEmpty else { return }
        parts.append(PatternPart(matcher: .literal(pending), modifier: .once, name: "", prefix: [], suffix: []))
        pending = []
    }

    private mutating func add(
        _ prefix: [UInt32], _ group: Group?, _ suffix: [UInt32], _ modifier: PatternPart.Modifier
    ) throws(PluginError) {
        guard let group else {
            if modifier == .once {
                pending += prefix
            } else if !prefix.isEmpty {
                addPending()
                parts.append(
                    PatternPart(matcher: .literal(prefix), modifier: modifier, name: "", prefix: [], suffix: []))
            }
            return
        }
        addPending()
        let matcher: PatternPart.Matcher
        if let (text, position) = group.expression {
            let expression = try ExpressionParser.parse(text, at: position, of: pattern)
            matcher = text == [0x2E, 0x2A] ? .anything : .expression(expression)
        } else {
            matcher = group.isAnything ? .anything : .segment
        }
        let name = group.name ?? String(nextNumber)
        if group.name == nil { nextNumber += 1 }
        guard names.insert(name).inserted else {
            throw .invalidPattern(pattern, at: group.position, "two groups named “\(name.shortened)”")
        }
        parts.append(PatternPart(matcher: matcher, modifier: modifier, name: name, prefix: prefix, suffix: suffix))
    }
}
