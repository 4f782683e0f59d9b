/// Paths as a tree of their segments, searched from the most specific branch to the least specific one.
///
/// A pattern is entered segment by segment, as long as each segment can be decided alone; what follows (`*`, `:rest+`,
/// optional parts) is decided by the pattern's automaton on the whole path. Every node is visited at most once in a
/// search, since each is reached in one way only.
struct PathTree<Payload: Sendable>: Sendable {
    /// How specific a segment is, the most specific first.
    private enum Rank: Int, Sendable {
        case mixed, expression, name, repeated, anything
    }

    /// A segment of a pattern that can be decided alone.
    private enum Segment: Hashable, Sendable {
        case literal([UInt32])
        /// Literals and groups.
        case mixed([PatternPart])
        case expression([PatternPart])
        case name
    }

    private final class Node: Sendable {
        nonisolated(unsafe) var literals: [[UInt32]: Node] = [:]
        nonisolated(unsafe) var edges: [Edge] = []
        nonisolated(unsafe) var leaf: Leaf?
        // Built by one thread in insert and finish; read-only from then on.
    }

    private struct Edge: Sendable {
        let rank: Rank
        /// What sorts edges of equal rank.
        let text: String
        let step: Step

        enum Step: Sendable {
            /// One segment, which an automaton decides; nil: any segment that is not empty.
            case segment([PatternPart]?, Automaton?, Node)
            /// The rest of the path.
            case rest(Leaf)
        }
    }

    private struct Leaf: Sendable {
        let pattern: PathPattern
        let payload: Payload
        /// For patterns whose groups are whole segments: the segment of each, in the order of the names.
        let places: [Int]?
    }

    private let root = Node()

    mutating func insert(_ pattern: PathPattern, _ payload: Payload) {
        let (segments, rest) = Self.divide(pattern.parts)
        let isWhole = rest == nil
        var node = root
        var places: [Int] = []
        var isPlain = isWhole
        for (index, segment) in segments.enumerated() {
            switch segment {
            case .literal(let scalars):
                if node.literals[scalars] == nil { node.literals[scalars] = Node() }
                node = node.literals[scalars]!
            case .name:
                places.append(index)
                node = Self.child(of: node, .name, nil, text: ":")
            case .expression(let parts):
                isPlain = false
                node = Self.child(of: node, .expression, parts, text: pattern.text)
            case .mixed(let parts):
                isPlain = false
                node = Self.child(of: node, .mixed, parts, text: pattern.text)
            }
        }
        let leaf = Leaf(pattern: pattern, payload: payload, places: isPlain ? places : nil)
        if let rest {
            node.edges.append(Edge(rank: rest, text: pattern.text, step: .rest(leaf)))
        } else {
            node.leaf = leaf
        }
    }

    private static func child(of node: Node, _ rank: Rank, _ parts: [PatternPart]?, text: String) -> Node {
        let shape = parts?.map {
            PatternPart(
                matcher: $0.matcher, modifier: $0.modifier, name: $0.name.isEmpty ? "" : "_", prefix: $0.prefix,
                suffix: $0.suffix)
        }
        for edge in node.edges {
            if case .segment(shape, _, let child) = edge.step, edge.rank == rank { return child }
        }
        let child = Node()
        let automaton = parts.flatMap { try? Automaton($0, delimiter: PathScalars.separator, of: text) }
        node.edges.append(Edge(rank: rank, text: text, step: .segment(shape, automaton, child)))
        return child
    }

    /// Puts the branches in their order; after the last insert.
    mutating func finish() { Self.finish(root) }

    private static func finish(_ node: Node) {
        node.edges.sort { ($0.rank.rawValue, $0.text) < ($1.rank.rawValue, $1.text) }
        for child in node.literals.values { finish(child) }
        for edge in node.edges { if case .segment(_, _, let child) = edge.step { finish(child) } }
    }

    // MARK: Dividing patterns

    /// The segments from the left that can be decided alone; if they are not the whole pattern, how specific the rest is.
    private static func divide(_ parts: [PatternPart]) -> ([Segment], Rank?) {
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
                return (segments.map(classify), begun.isEmpty ? rank(of: part) : .mixed)
            }
            if part.prefix.first == PathScalars.separator {
                segments.append([part.with(prefix: Array(part.prefix.dropFirst()))])
            } else {
                segments[segments.count - 1].append(part)
            }
        }
        return (segments.map(classify), nil)
    }

    private static func classify(_ parts: [PatternPart]) -> Segment {
        if parts.isEmpty { return .literal([]) }
        if parts.count == 1 {
            let part = parts[0]
            if case .literal(let scalars) = part.matcher { return .literal(scalars) }
            if part.prefix.isEmpty, part.suffix.isEmpty { return part.matcher == .segment ? .name : .expression(parts) }
        }
        let literals = parts.map { part -> [UInt32]? in
            if case .literal(let scalars) = part.matcher { scalars } else { nil }
        }
        if literals.allSatisfy({ $0 != nil }) { return .literal(literals.flatMap { $0! }) }
        return .mixed(parts)
    }

    /// How specific the part is at which a pattern leaves the tree.
    private static func rank(of part: PatternPart) -> Rank {
        switch part.matcher {
        case .anything: .anything
        case .expression: .expression
        case .literal, .segment: .repeated
        }
    }

    // MARK: Searching

    /// The most specific entry that matches, and what its groups take.
    func match(_ path: [UInt32]) -> (Payload, [String: String])? {
        let segments = path.split(separator: PathScalars.separator, omittingEmptySubsequences: false)
        return Self.search(root, segments, 0, path)
    }

    private static func search(
        _ node: Node, _ segments: [ArraySlice<UInt32>], _ index: Int, _ path: [UInt32]
    ) -> (Payload, [String: String])? {
        if index == segments.count {
            if let leaf = node.leaf, let values = values(leaf, segments, path) { return (leaf.payload, values) }
        } else if !node.literals.isEmpty, let child = node.literals[Array(segments[index])],
            let found = search(child, segments, index + 1, path)
        {
            return found
        }
        for edge in node.edges {
            switch edge.step {
            case .segment(_, let automaton, let child):
                guard index < segments.count else { continue }
                if let automaton {
                    guard automaton.match(segments[index]) != nil else { continue }
                } else if segments[index].isEmpty {
                    continue
                }
                if let found = search(child, segments, index + 1, path) { return found }
            case .rest(let leaf):
                if let values = values(leaf, nil, path) { return (leaf.payload, values) }
            }
        }
        return nil
    }

    private static func values(
        _ leaf: Leaf, _ segments: [ArraySlice<UInt32>]?, _ path: [UInt32]
    ) -> [String: String]? {
        guard let segments, let places = leaf.places else {
            return leaf.pattern.match(path)?.compactMapValues(\.self)
        }
        var values: [String: String] = [:]
        for (name, place) in zip(leaf.pattern.names, places) { values[name] = PathScalars.text(segments[place]) }
        return values
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

    /// Whether what it takes never reaches over a slash, and its own slash can only stand at its beginning.
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
    /// Whether there is an input of the expression that contains a scalar, or depends on where the input begins or ends.
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
