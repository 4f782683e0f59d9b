/// The pairs of patterns that match some of the same URLs and are equally specific, so that only their text decides.
struct Overlaps {
    private var pairs: [Int: [Int]] = [:]
    /// The patterns that were not compared with all others of their rank.
    private var unfinished: Set<Int> = []

    /// How many steps all comparisons of a listing may take together. They take some tenths of a second.
    static let mostSteps = 5_000_000

    /// Compares patterns with the same position in the tree. Between other patterns, a segment decides.
    ///
    /// - Parameter budget: How many steps the comparisons may take. The remaining patterns are not compared.
    init(_ patterns: [RoutePattern], within budget: Int = Overlaps.mostSteps) {
        var budget = budget
        var groups: [TreePosition: [Int]] = [:]
        var order: [TreePosition] = []
        for (index, pattern) in patterns.enumerated() {
            guard let path = pattern.path else { continue }
            let position = TreePosition(scheme: pattern.scheme, host: pattern.host?.text, path: path)
            if groups[position] == nil { order.append(position) }
            groups[position, default: []].append(index)
        }
        for position in order { compare(groups[position]!, patterns, &budget) }
    }

    private mutating func compare(_ group: [Int], _ patterns: [RoutePattern], _ budget: inout Int) {
        guard group.count > 1 else { return }
        let automata = group.map { patterns[$0].path!.automaton }
        for index in group.indices {
            for other in group.indices[(index + 1)...] {
                budget -= 1
                let overlap = budget < 0 ? .unknown : automata[index].overlaps(automata[other], within: &budget)
                switch overlap {
                case .none: continue
                case .some:
                    pairs[group[index], default: []].append(group[other])
                    pairs[group[other], default: []].append(group[index])
                case .unknown: unfinished.formUnion([group[index], group[other]])
                }
            }
            if budget < 0 { return unfinished.formUnion(group[index...]) }
        }
    }

    func others(of index: Int) -> [Int] { (pairs[index] ?? []).sorted() }

    /// Returns whether a pattern was compared with all others of its rank.
    func isComplete(_ index: Int) -> Bool { !unfinished.contains(index) }

    private struct TreePosition: Hashable {
        let scheme: String?
        let host: String?
        let segments: [Segment]
        let rest: PathSegment.Rank?
        let rank: [Int]

        enum Segment: Hashable {
            case literal([UInt8])
            case groups(PathSegment.Rank)
        }

        init(scheme: String?, host: String?, path: PathPattern) {
            (self.scheme, self.host, rest) = (scheme, host, path.rest)
            segments = path.segments.map { segment in
                if case .literal(let bytes) = segment { .literal(bytes) } else { .groups(segment.rank) }
            }
            rank = path.rank
        }
    }
}

extension PathPattern {
    /// The kind of each group, in order. Patterns of equal rank share it.
    fileprivate var rank: [Int] {
        parts.filter { !$0.name.isEmpty }.map { part in
            let kind =
                switch part.matcher {
                case .literal: 0
                case .expression: 1
                case .segment: 2
                case .anything: 3
                }
            return part.modifier == .once ? kind : kind + 4
        }
    }
}
