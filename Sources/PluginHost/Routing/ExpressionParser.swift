import PluginABI

/// A parser for the regular subset of JavaScript's expressions: classes, alternation, groups, bounded and unbounded
/// repetition. Features that no automaton supports (look-around, back-references) are refused with their position.
struct ExpressionParser {
    private let text: [UInt32]
    /// The position of the expression in the pattern, for messages.
    private let offset: Int
    private let pattern: String
    private var index = 0
    private var depth = 0
    /// The number of ranges in the operands of class operators so far.
    private var setWork = 0

    /// How often an expression may be repeated by a bounded repetition, which is compiled as that many copies.
    static let mostRepetitions = 1000
    /// How deep groups and classes may be nested, since functions that process an expression recurse for each level.
    static let mostLevels = 64
    /// How many ranges the operands of all class operators (`&&`, `--`) may have together. Each operator processes all
    /// ranges of both operands, so a long row of operators on one large class would take quadratic time.
    static let mostSetWork = 1_000_000

    static func parse(_ text: [UInt32], at offset: Int, of pattern: String) throws(PluginError) -> Expression {
        var parser = ExpressionParser(text: text, offset: offset, pattern: pattern)
        let expression = try parser.alternation()
        if parser.index < text.count { throw parser.refused("an unbalanced “)”") }
        return expression
    }

    private func refused(_ what: String, at position: Int? = nil) -> PluginError {
        .invalidPattern(pattern, at: offset + (position ?? index), what)
    }

    private var next: UnicodeScalar? { index < text.count ? UnicodeScalar(text[index]) : nil }

    private mutating func take(_ scalar: UnicodeScalar) -> Bool {
        guard next == scalar else { return false }
        index += 1
        return true
    }

    private mutating func alternation() throws(PluginError) -> Expression {
        depth += 1
        defer { depth -= 1 }
        guard depth <= Self.mostLevels + 1 else {
            throw refused("groups nested more than \(Self.mostLevels) levels deep")
        }
        var choices = [try concatenation()]
        while take("|") { choices.append(try concatenation()) }
        return choices.count == 1 ? choices[0] : .alternation(choices)
    }

    private mutating func concatenation() throws(PluginError) -> Expression {
        var pieces: [Expression] = []
        while let scalar = next, scalar != "|", scalar != ")" { pieces.append(try repetition()) }
        return pieces.count == 1 ? pieces[0] : pieces.isEmpty ? .empty : .concatenation(pieces)
    }

    private mutating func repetition() throws(PluginError) -> Expression {
        let position = index
        let repeated = try atom()
        let bounds: (Int, Int?)?
        switch next {
        case "*": (bounds, index) = ((0, nil), index + 1)
        case "+": (bounds, index) = ((1, nil), index + 1)
        case "?": (bounds, index) = ((0, 1), index + 1)
        case "{": bounds = try braces()
        default: bounds = nil
        }
        guard let (atLeast, atMost) = bounds else { return repeated }
        if repeated == .start || repeated == .end { throw refused("a repetition of “^” or “$”", at: position) }
        let isLazy = take("?")
        if let next, "*+?{".unicodeScalars.contains(next) { throw refused("a repetition of a repetition") }
        return .repetition(repeated, atLeast: atLeast, atMost: atMost, isLazy: isLazy)
    }

    /// Parses `{2}`, `{2,}` or `{2,5}`.
    private mutating func braces() throws(PluginError) -> (Int, Int?) {
        let position = index
        index += 1
        guard let atLeast = number() else { throw refused("a “{” that is not a valid repetition", at: position) }
        var atMost: Int? = atLeast
        if take(",") { atMost = next == "}" ? nil : number() ?? -1 }
        guard take("}"), atMost.map({ $0 >= atLeast }) ?? true else {
            throw refused("a “{” that is not a valid repetition", at: position)
        }
        guard max(atLeast, atMost ?? 0) <= Self.mostRepetitions else {
            throw refused("more than \(Self.mostRepetitions) repetitions", at: position)
        }
        return (atLeast, atMost)
    }

    private mutating func number() -> Int? {
        let start = index
        while let next, ("0"..."9").contains(next) { index += 1 }
        return Int(PathScalars.text(text[start..<index]))
    }

    private mutating func atom() throws(PluginError) -> Expression {
        let position = index
        guard let scalar = next else { throw refused("an unexpected end") }
        index += 1
        switch scalar {
        case ".": return .scalars(ScalarSet.lineEnds.inverted)
        case "^": return .start
        case "$": return .end
        case "(": return try group(at: position)
        case "[": return .scalars(try set(at: position))
        case "\\": return .scalars(try escape(at: position, inSet: false))
        case "*", "+", "?", "{", "}", "]": throw refused("a “\(scalar)” with nothing before it", at: position)
        default: return .scalars(.scalar(scalar.value))
        }
    }

    private mutating func group(at position: Int) throws(PluginError) -> Expression {
        guard take("?") else { throw refused("a group inside a group: write (?:…)", at: position) }
        guard take(":") else {
            throw refused("look-around or a named group, which cannot be matched in linear time", at: position)
        }
        let inner = try alternation()
        guard take(")") else { throw refused("a “(” without a matching “)”", at: position) }
        return inner
    }

    // MARK: Classes

    /// Parses a class after its `[`, including its `]`: a union of members, or operands of the operators `&&` or `--`.
    private mutating func set(at position: Int) throws(PluginError) -> ScalarSet {
        depth += 1
        defer { depth -= 1 }
        guard depth <= Self.mostLevels + 1 else {
            throw refused("classes nested more than \(Self.mostLevels) levels deep", at: position)
        }
        let isInverted = take("^")
        // Adjacent members are collected and sorted once.
        var ranges: [ClosedRange<UInt32>] = []
        while let scalar = next, scalar != "]" {
            let start = index
            if let operation = takeOperation() {
                guard start > position + (isInverted ? 2 : 1), next != "]" else {
                    throw refused("a class operator with a missing operand", at: start)
                }
                let (set, other) = (ScalarSet(ranges), try operand())
                setWork += set.ranges.count + other.ranges.count
                guard setWork <= Self.mostSetWork else {
                    throw refused("class operators with more than \(Self.mostSetWork) ranges in total", at: start)
                }
                ranges = (operation == .intersection ? set.intersection(other) : set.subtracting(other)).ranges
            } else {
                ranges += try operand().ranges
            }
        }
        guard take("]") else { throw refused("a “[” without a matching “]”", at: position) }
        let set = ScalarSet(ranges)
        return isInverted ? set.inverted : set
    }

    private enum Operation { case intersection, subtraction }

    private mutating func takeOperation() -> Operation? {
        guard index + 1 < text.count, text[index] == text[index + 1] else { return nil }
        let operation: Operation
        switch next {
        case "&": operation = .intersection
        case "-": operation = .subtraction
        default: return nil
        }
        index += 2
        return operation
    }

    /// Parses a character, an escape, a range, or a class in a class.
    private mutating func operand() throws(PluginError) -> ScalarSet {
        let start = index
        if take("[") { return try set(at: start) }
        let low = try member(at: start)
        guard next == "-", index + 1 < text.count, text[index + 1] != 0x5D, text[index + 1] != 0x2D else { return low }
        index += 1
        let high = try member(at: index)
        guard let from = low.single, let to = high.single, from <= to else {
            throw refused("a range without a valid beginning and end", at: start)
        }
        return ScalarSet([from...to])
    }

    private mutating func member(at position: Int) throws(PluginError) -> ScalarSet {
        guard index < text.count else { throw refused("a “[” without a matching “]”") }
        let scalar = text[index]
        index += 1
        return scalar == 0x5C ? try escape(at: position, inSet: true) : .scalar(scalar)
    }

    private mutating func escape(at position: Int, inSet: Bool) throws(PluginError) -> ScalarSet {
        guard let scalar = next else { throw refused("a “\\” at the end", at: position) }
        index += 1
        switch scalar {
        case "d": return .digits
        case "D": return ScalarSet.digits.inverted
        case "w": return .word
        case "W": return ScalarSet.word.inverted
        case "s": return .space
        case "S": return ScalarSet.space.inverted
        case "n": return .scalar(0x0A)
        case "r": return .scalar(0x0D)
        case "t": return .scalar(0x09)
        case "f": return .scalar(0x0C)
        case "v": return .scalar(0x0B)
        case "0" where next.map({ !("0"..."9").contains($0) }) ?? true: return .scalar(0)
        case "x": return try hexadecimal(2, at: position)
        case "u":
            if take("{") {
                let start = index
                while let next, next != "}" { index += 1 }
                let digits = PathScalars.text(text[start..<index])
                guard take("}"), let value = UInt32(digits, radix: 16), value <= 0x10FFFF else {
                    throw refused("an escape that does not denote a character", at: position)
                }
                return .scalar(value)
            }
            return try hexadecimal(4, at: position)
        case "1"..."9", "k": throw refused("a back-reference, which cannot be matched in linear time", at: position)
        case "b", "B": throw refused("a word boundary, which requires look-around", at: position)
        case "a"..."z", "A"..."Z", "0": throw refused("the unknown escape “\\\(scalar)”", at: position)
        default: return .scalar(scalar.value)
        }
    }

    private mutating func hexadecimal(_ count: Int, at position: Int) throws(PluginError) -> ScalarSet {
        let digits = PathScalars.text(text[index...].prefix(count))
        guard digits.utf8.count == count, let value = UInt32(digits, radix: 16) else {
            throw refused("an escape that does not denote a character", at: position)
        }
        index += count
        return .scalar(value)
    }
}

extension ScalarSet {
    fileprivate var single: UInt32? {
        ranges.count == 1 && ranges[0].count == 1 ? ranges[0].lowerBound : nil
    }
}

extension PluginError {
    /// - Parameters:
    ///   - position: The position in Unicode scalars from the beginning of the pattern.
    ///   - what: What the pattern has that is invalid.
    static func invalidPattern(_ pattern: String, at position: Int, _ what: String) -> PluginError {
        PluginError(.invalidPattern, "The pattern “\(pattern.shortened)” has \(what), at position \(position).")
    }
}
