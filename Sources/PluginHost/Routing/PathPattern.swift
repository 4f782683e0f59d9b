import PluginABI

/// A pattern of one component of a URL, its path or its host, for matching and building.
final class PathPattern: Sendable {
    /// The text that the pattern was read from, and the offset in bytes at which the component begins. It extends to
    /// the end of the text.
    private let source: (text: String, start: Int)
    /// The parts; `nil` if ``PlainPattern`` has read the pattern. The parts then follow from the segments.
    private let parsedParts: [PatternPart]?
    /// The segments that the route table decides one by one, and how specific the rest is.
    let division: PathSegment.Division
    /// The variants of a pattern with optional groups; otherwise empty. `division` is that of the first one.
    let variants: [Variant]
    let delimiter: UInt32
    /// The automaton, if a search needs it.
    private let preparedAutomaton: Automaton?
    /// Whether all groups are whole segments.
    let isPlain: Bool
    /// The names of the groups, in the order of the captures.
    let names: [String]

    /// The maximum length of a pattern in bytes. This bounds the time that it takes to parse a pattern.
    static let mostBytes = 1 << 20

    var text: String { Self.text(source) }
    /// The segments that the route table decides one by one.
    var segments: [PathSegment] { division.segments }
    /// How specific the rest of the pattern is, if there is one.
    var rest: PathSegment.Rank? { division.rest }

    private static func text(_ source: (text: String, start: Int)) -> String {
        source.start == 0 ? source.text : String(source.text.utf8.dropFirst(source.start))!
    }

    var parts: [PatternPart] { parsedParts ?? PlainPattern.parts(segments, names) }

    /// Reads the pattern of a component.
    ///
    /// - Parameters:
    ///   - start: The offset of the component in `text`, in bytes. It extends to the end of `text`.
    ///   - offset: The offset of the component in `pattern`, in scalars, for messages.
    ///   - delimiter: The separator of segments: `/` in paths, `.` in hosts.
    ///   - earlierNames: The names of groups before the component in `pattern`, including numbers.
    /// - Throws: `invalidPattern`, with the position if there is one.
    init(
        _ text: String, from start: Int = 0, at offset: @autoclosure () -> Int = 0, of pattern: String? = nil,
        delimiter: UnicodeScalar = "/", earlierNames: [String] = []
    ) throws(PluginError) {
        source = (text, start)
        self.delimiter = delimiter.value
        guard text.utf8.count <= Self.mostBytes else {
            throw PluginError(
                .invalidPattern,
                "The pattern “\(text.shortened)” has \(text.utf8.count) bytes; at most \(Self.mostBytes) are accepted."
            )
        }
        if earlierNames.isEmpty, let plain = PlainPattern(text, from: start, delimiter: delimiter) {
            (parsedParts, division, names) = (nil, PathSegment.Division(segments: plain.segments), plain.names)
            (variants, preparedAutomaton, isPlain) = ([], nil, true)
            return
        }
        let whole = pattern ?? text
        let written = try PatternParser.parse(
            PathScalars.plain(Self.text(source)), at: offset(), of: whole, delimiter: delimiter.value,
            earlierNames: earlierNames)
        let parts = delimiter == "/" ? Self.withoutDots(written) : written.map(\.inLowerCase)
        parsedParts = parts
        names = written.map(\.name).filter { !$0.isEmpty }
        let isOptional = parts.contains { $0.modifier == .optional || $0.modifier == .zeroOrMore }
        let division = PathSegment.divide(parts, delimiter.value)
        isPlain =
            !isOptional && division.rest == nil && division.segments.allSatisfy { $0.rank == .literal || $0 == .name }
        // A search needs the automata of hosts with groups, and of all paths below them.
        let isDecidedByTree = isPlain && earlierNames.isEmpty && (delimiter == "/" || names.isEmpty)
        preparedAutomaton = isDecidedByTree ? nil : try Automaton(parts, delimiter: delimiter.value, of: whole)
        variants =
            isOptional
            ? Self.variants(of: parts, delimiter.value, steps: preparedAutomaton?.work.perScalar ?? 0) : []
        if let first = variants.first {
            self.division = first.division
        } else if delimiter != "/", isPlain, names.isEmpty {
            self.division = PathSegment.Division(segments: [.literal(parts.flatMap(\.literalBytes))])
        } else {
            self.division = division
        }
    }

    /// Creates the same pattern with other names for some of its groups.
    init(_ other: PathPattern, renaming renamed: [String: String]) {
        (source, delimiter, division) = (other.source, other.delimiter, other.division)
        (preparedAutomaton, isPlain, variants) = (other.preparedAutomaton, other.isPlain, other.variants)
        parsedParts = other.parsedParts?.map { part in
            var part = part
            part.name = renamed[part.name] ?? part.name
            return part
        }
        names = other.names.map { renamed[$0] ?? $0 }
    }

    /// The maximum work that matching a component and finding its captures takes.
    var work: SearchWork { preparedAutomaton?.work ?? SearchWork() }

    /// How many transitions were followed to create the automata.
    var transitions: Int {
        variants.reduce(preparedAutomaton?.sets.transitions ?? 0) { $0 + ($1.automaton?.sets.transitions ?? 0) }
    }

    var automaton: Automaton { preparedAutomaton ?? Automaton(bounded: parts, delimiter: delimiter) }

    /// Removes `.` and `..` from literals. They are removed from URLs, too, so a pattern with them would never match.
    private static func withoutDots(_ parts: [PatternPart]) -> [PatternPart] {
        let hasDots = parts.contains {
            if case .literal(let scalars) = $0.matcher { scalars.contains(0x2E) } else { false }
        }
        guard hasDots else { return parts }
        var kept: [PatternPart] = []
        for (index, part) in parts.enumerated() {
            guard part.modifier == .once, case .literal(let scalars) = part.matcher,
                scalars.first == PathScalars.separator, scalars.contains(0x2E)
            else {
                kept.append(part)
                continue
            }
            // Text directly before a group is only a part of a segment.
            let isOpen = index + 1 < parts.count && parts[index + 1].prefix.first != PathScalars.separator
            let end = isOpen ? scalars.lastIndex(of: PathScalars.separator)! + 1 : scalars.count
            let isFollowed = index + 1 < parts.count && !isOpen
            let whole = PathScalars.withoutDots(scalars[..<end] + (isFollowed ? [PathScalars.separator] : []))
            let literal = Array(whole.dropLast(isFollowed ? 1 : 0) + scalars[end...])
            var part = part
            part.matcher = .literal(literal)
            if !literal.isEmpty { kept.append(part) }
        }
        return kept
    }

    /// Returns the captures of the groups in a component, or `nil` if it does not match. The value of a group that took
    /// no part in the match is `nil`.
    func match(_ component: [UInt32]) -> [String: String?]? {
        guard preparedAutomaton != nil else { return matchSegments(component) }
        guard let taken = automaton.match(component) else { return nil }
        var values: [String: String?] = [:]
        for (name, range) in zip(names, taken) {
            values.updateValue(range.map { PathScalars.text(component[$0]) }, forKey: name)
        }
        return values
    }

    /// Matches a pattern of literals and whole segments, of any length, without an automaton.
    private func matchSegments(_ component: [UInt32]) -> [String: String?]? {
        // A host without groups is one segment.
        let pieces =
            delimiter == PathScalars.separator
            ? component.split(separator: delimiter, omittingEmptySubsequences: false) : [component[...]]
        guard pieces.count == segments.count else { return nil }
        var values: [String: String?] = [:]
        for (piece, segment) in zip(pieces, segments) {
            if case .literal(let text) = segment {
                guard PathScalars.bytes(piece) == text else { return nil }
            } else {
                guard !piece.isEmpty else { return nil }
                values.updateValue(PathScalars.text(piece), forKey: names[values.count])
            }
        }
        return values
    }

    /// Builds a component from values of the groups. The caller checks that the pattern matches it and yields the
    /// values.
    ///
    /// - Parameters:
    ///   - values: The values by group. Values that are used are removed.
    ///   - encode: Escapes characters that a component cannot contain unescaped.
    /// - Throws: `missingParameter` if a group has no value.
    func build(
        _ values: inout [String: String], encode: (_ text: String, _ keepsSlashes: Bool) -> String
    ) throws(PluginError) -> String {
        var built = ""
        for part in parts {
            let prefix = encode(PathScalars.text(part.prefix), true)
            let suffix = encode(PathScalars.text(part.suffix), true)
            if case .literal(let scalars) = part.matcher {
                if part.modifier == .once || part.modifier == .oneOrMore { built += Self.encode(scalars, encode) }
                continue
            }
            guard let value = values.removeValue(forKey: part.name) else {
                if part.modifier == .optional || part.modifier == .zeroOrMore { continue }
                let isNumber = part.name.utf8.allSatisfy { (0x30...0x39).contains($0) }
                throw PluginError(
                    .missingParameter,
                    "The pattern “\(text.shortened)” needs a value for “\(part.name.shortened)” to build a URL"
                        + (isNumber ? ", the number of a group without a name." : "."))
            }
            let isRepeated = part.modifier == .zeroOrMore || part.modifier == .oneOrMore
            built += prefix + encode(value, isRepeated || part.matcher == .anything) + suffix
        }
        return built
    }

    private static func encode(_ scalars: [UInt32], _ encode: (String, Bool) -> String) -> String {
        scalars.split(separator: PathScalars.escapedSeparator, omittingEmptySubsequences: false)
            .map { encode(PathScalars.text($0), true) }.joined(separator: "%2F")
    }
}

extension PatternPart {
    /// The bytes of a literal.
    fileprivate var literalBytes: [UInt8] {
        if case .literal(let scalars) = matcher { PathScalars.bytes(scalars) } else { [] }
    }

    /// The part in lower case, for a host, which is compared without regard to case.
    fileprivate var inLowerCase: PatternPart {
        func lower(_ scalars: [UInt32]) -> [UInt32] {
            let isLower = scalars.allSatisfy { $0 < 0x80 && !(0x41...0x5A).contains($0) }
            return isLower ? scalars : PathScalars.text(scalars).lowercased().unicodeScalars.map(\.value)
        }
        var part = self
        switch matcher {
        case .literal(let scalars): part.matcher = .literal(lower(scalars))
        case .expression(let expression): part.matcher = .expression(expression.takingLowerCase)
        case .segment, .anything: break
        }
        (part.prefix, part.suffix) = (lower(prefix), lower(suffix))
        return part
    }
}

extension Expression {
    /// The expression that also matches lower-case ASCII letters where it matches upper-case ones.
    fileprivate var takingLowerCase: Expression {
        switch self {
        case .empty, .start, .end: self
        case .scalars(let set): .scalars(set.union(set.intersection(.capitals).shifted(by: 0x20)))
        case .concatenation(let pieces): .concatenation(pieces.map(\.takingLowerCase))
        case .alternation(let choices): .alternation(choices.map(\.takingLowerCase))
        case .repetition(let repeated, let atLeast, let atMost, let isLazy):
            .repetition(repeated.takingLowerCase, atLeast: atLeast, atMost: atMost, isLazy: isLazy)
        }
    }
}
