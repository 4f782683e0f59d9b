/// A segment of a pattern that can be decided alone.
enum PathSegment: Hashable, Sendable {
    /// A literal, as bytes of a `RawText`.
    case literal([UInt8])
    /// Literals and groups.
    case mixed([PatternPart])
    /// A group with an expression of its own.
    case expression([PatternPart])
    case name

    /// How specific a segment is, or a pattern from a segment on. The most specific rank comes first.
    enum Rank: Int, Sendable, Comparable {
        case literal, mixed, expression, name, repeated, anything

        static func < (left: Rank, right: Rank) -> Bool { left.rawValue < right.rawValue }
    }

    var rank: Rank {
        switch self {
        case .literal: .literal
        case .mixed: .mixed
        case .expression: .expression
        case .name: .name
        }
    }

    /// Returns the leading segments of a pattern that can be decided alone, and how specific the rest is if they are
    /// not the whole pattern.
    ///
    /// - Parameter separator: The separator of segments: `/` in paths, `.` in hosts.
    static func divide(_ parts: [PatternPart], _ separator: UInt32) -> ([PathSegment], rest: Rank?) {
        var segments: [[PatternPart]] = [[]]
        func add(_ scalars: [UInt32]) {
            let pieces = scalars.split(separator: separator, omittingEmptySubsequences: false)
            for (index, piece) in pieces.enumerated() {
                if index > 0 { segments.append([]) }
                if !piece.isEmpty { segments[segments.count - 1].append(.literal(Array(piece))) }
            }
        }
        for (index, part) in parts.enumerated() {
            if part.modifier == .once {
                if case .literal(let scalars) = part.matcher {
                    add(scalars)
                    continue
                }
                add(part.prefix)
                if part.matcher.staysInSegment(separator) {
                    segments[segments.count - 1].append(part.withoutSurroundings)
                    add(part.suffix)
                    continue
                }
            }
            let begun = part.modifier != .once && part.begins(with: separator) ? [] : segments.removeLast()
            let next = index + 1 < parts.count ? parts[index + 1] : nil
            let isMixed = !begun.isEmpty || part.isMixed(separator, before: next)
            return (segments.map(classify), rest: isMixed ? .mixed : rank(of: part))
        }
        return (segments.map(classify), nil)
    }

    private static func classify(_ parts: [PatternPart]) -> PathSegment {
        if parts.isEmpty { return .literal([]) }
        if parts.count == 1 {
            let part = parts[0]
            if case .literal(let scalars) = part.matcher { return .literal(PathScalars.bytes(scalars)) }
            return part.matcher == .segment ? .name : .expression(parts)
        }
        let literals = parts.map { part -> [UInt32]? in
            if case .literal(let scalars) = part.matcher { scalars } else { nil }
        }
        if literals.allSatisfy({ $0 != nil }) { return .literal(PathScalars.bytes(literals.flatMap { $0! })) }
        return .mixed(parts)
    }

    /// Returns how specific the part is that begins the rest of a pattern.
    private static func rank(of part: PatternPart) -> Rank {
        switch part.matcher {
        case .anything: .anything
        case .expression: .expression
        case .literal, .segment: .repeated
        }
    }
}

extension PatternPart {
    fileprivate static func literal(_ scalars: [UInt32]) -> PatternPart {
        PatternPart(matcher: .literal(scalars), modifier: .once, name: "", prefix: [], suffix: [])
    }

    fileprivate var withoutSurroundings: PatternPart {
        PatternPart(matcher: matcher, modifier: modifier, name: name, prefix: [], suffix: [])
    }

    /// The literal text with which the part begins.
    private var beginning: [UInt32] { if case .literal(let scalars) = matcher { prefix + scalars } else { prefix } }

    fileprivate func begins(with separator: UInt32) -> Bool { beginning.first == separator }

    /// Whether the segment that begins with the part contains literals as well as groups, as in `*.png`. A literal before
    /// a part that is not repeated was divided already.
    fileprivate func isMixed(_ separator: UInt32, before next: PatternPart?) -> Bool {
        if case .literal = matcher { return false }
        if modifier != .once {
            if prefix.count > (begins(with: separator) ? 1 : 0) { return true }
            return !suffix.isEmpty && suffix.first != separator
        }
        if let first = suffix.first { return first != separator }
        guard let next else { return false }
        return !next.begins(with: separator)
    }
}

extension PatternPart.Matcher {
    /// Whether it matches only text without separators.
    fileprivate func staysInSegment(_ separator: UInt32) -> Bool {
        switch self {
        case .literal, .segment: true
        case .anything: false
        case .expression(let expression): !expression.canTake(separator)
        }
    }
}

extension Expression {
    /// Returns whether the expression can match a scalar, or depends on the beginning or end of the input.
    fileprivate func canTake(_ scalar: UInt32) -> Bool {
        switch self {
        case .empty: false
        case .start, .end: true
        case .scalars(let set): set.contains(scalar)
        case .concatenation(let pieces), .alternation(let pieces): pieces.contains { $0.canTake(scalar) }
        case .repetition(let repeated, _, _, _): repeated.canTake(scalar)
        }
    }
}
