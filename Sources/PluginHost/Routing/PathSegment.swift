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
    static func divide(_ parts: [PatternPart]) -> ([PathSegment], rest: Rank?) {
        var segments: [[PatternPart]] = [[]]
        for part in parts {
            if case .literal(let scalars) = part.matcher, part.modifier == .once {
                let pieces = scalars.split(separator: PathScalars.separator, omittingEmptySubsequences: false)
                for (index, piece) in pieces.enumerated() {
                    if index > 0 { segments.append([]) }
                    if !piece.isEmpty { segments[segments.count - 1].append(part.with(.literal(Array(piece)))) }
                }
                continue
            }
            guard part.modifier == .once, part.staysInSegment else {
                let begun = part.prefix.first == PathScalars.separator ? [] : segments.removeLast()
                return (segments.map(classify), rest: begun.isEmpty ? rank(of: part) : .mixed)
            }
            if part.prefix.first == PathScalars.separator {
                segments.append([part.with(prefix: Array(part.prefix.dropFirst()))])
            } else {
                segments[segments.count - 1].append(part)
            }
        }
        return (segments.map(classify), nil)
    }

    private static func classify(_ parts: [PatternPart]) -> PathSegment {
        if parts.isEmpty { return .literal([]) }
        if parts.count == 1 {
            let part = parts[0]
            if case .literal(let scalars) = part.matcher { return .literal(PathScalars.bytes(scalars)) }
            if part.prefix.isEmpty, part.suffix.isEmpty { return part.matcher == .segment ? .name : .expression(parts) }
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
    fileprivate func with(_ matcher: Matcher) -> PatternPart {
        var copy = self
        copy.matcher = matcher
        return copy
    }

    fileprivate func with(prefix: [UInt32]) -> PatternPart {
        var copy = self
        copy.prefix = prefix
        return copy
    }

    /// Whether the part matches only text without slashes, except for a slash at its beginning.
    fileprivate var staysInSegment: Bool {
        if prefix.dropFirst().contains(PathScalars.separator) || suffix.contains(PathScalars.separator) { return false }
        return switch matcher {
        case .literal, .segment: true
        case .anything: false
        case .expression(let expression): !expression.canTake(PathScalars.separator)
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
