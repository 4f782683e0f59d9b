/// A segment of a pattern that can be decided alone: whether it matches does not depend on the other segments.
enum PathSegment: Hashable, Sendable {
    /// A literal, as bytes of a `RawText`.
    case literal([UInt8])
    /// Literals and groups.
    case mixed([PatternPart])
    /// A group with an expression of its own.
    case expression([PatternPart])
    case name

    func hash(into hasher: inout Hasher) {
        switch self {
        // An array would hash its elements one by one.
        case .literal(let bytes):
            hasher.combine(bytes.count)
            bytes.withUnsafeBytes { hasher.combine(bytes: $0) }
        case .mixed(let parts), .expression(let parts): hasher.combine(parts)
        case .name: hasher.combine(0)
        }
    }

    /// How specific a segment is, or a pattern from a segment on. The most specific rank comes first.
    enum Rank: Int, Sendable, Comparable {
        case literal, mixed, expression, name, repeated, anything

        static func < (left: Rank, right: Rank) -> Bool { left.rawValue < right.rawValue }

        /// The rank in ``Division/specificity(end:)``, where smaller numbers stand for ends.
        var byte: UInt8 { UInt8(rawValue) + 2 }
    }

    var rank: Rank {
        switch self {
        case .literal: .literal
        case .mixed: .mixed
        case .expression: .expression
        case .name: .name
        }
    }

    /// A pattern, divided into the segments that can be decided alone and the rest.
    struct Division {
        /// The leading segments that can be decided alone.
        let segments: [PathSegment]
        /// How specific the rest is, if the segments are not the whole pattern.
        var rest: Rank? = nil
        /// How specific the pattern is after the part that begins the rest, in the form of ``specificity(end:)``.
        var behind: [UInt8] = []

        /// Returns how specific the pattern is. Of two patterns, the one whose bytes precede lexicographically is the
        /// more specific one. The ranks of the segments come first, then the end. After a part that can have any
        /// number of segments, the other parts are compared in the same way, and the end comes last.
        ///
        /// - Parameter end: The number for the end: 0, or 1 for a pattern with optional groups; after a part that can
        ///   have any number of segments, the largest number.
        func specificity(end: UInt8) -> [UInt8] {
            let ranks = segments.map(\.rank.byte)
            return switch rest {
            case nil: ranks + [end]
            case .repeated?, .anything?: ranks + [rest!.byte] + behind
            // Anything may follow the segment that begins the rest.
            case let rest?: ranks + [rest.byte, Rank.anything.byte] + behind
            }
        }
    }

    /// Divides a pattern.
    ///
    /// - Parameters:
    ///   - separator: The separator of segments: `/` in paths, `.` in hosts.
    ///   - depth: How many parts that can have any number of segments are taken into account.
    static func divide(_ parts: [PatternPart], _ separator: UInt32, depth: Int = 8) -> Division {
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
            let following = (part.suffix.isEmpty ? [] : [.literal(part.suffix)]) + parts[(index + 1)...]
            return Division(
                segments: segments.map(classify), rest: isMixed ? .mixed : rank(of: part),
                behind: following.isEmpty || depth == 0
                    ? [.max] : divide(following, separator, depth: depth - 1).specificity(end: .max))
        }
        return Division(segments: segments.map(classify))
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

    /// Whether the segment that begins with the part contains literals as well as groups, as in `*.png`. A literal
    /// before a part that is not repeated has already been divided.
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
    /// Whether the matcher matches only text without separators.
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
