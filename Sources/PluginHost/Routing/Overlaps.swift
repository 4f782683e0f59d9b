/// Which patterns match some of the same URLs and are equally specific, so that only their text decides.
struct Overlaps {
    private var pairs: [Int: [Int]] = [:]

    /// Compares patterns that stand at one place of the tree: of others a segment decides.
    init(_ patterns: [RoutePattern]) {
        let groups = Dictionary(grouping: patterns.indices.filter { patterns[$0].path != nil }) { index in
            Place(scheme: patterns[index].scheme, host: patterns[index].host?.text, path: patterns[index].path!)
        }
        for group in groups.values where group.count > 1 {
            for (place, one) in group.enumerated() {
                for other in group[(place + 1)...] {
                    guard let a = patterns[one].path, let b = patterns[other].path, a.rank == b.rank,
                        a.automaton.intersects(b.automaton)
                    else { continue }
                    pairs[one, default: []].append(other)
                    pairs[other, default: []].append(one)
                }
            }
        }
    }

    func others(of index: Int) -> [Int] { (pairs[index] ?? []).sorted() }

    private struct Place: Hashable {
        let scheme: String?
        let host: String?
        let segments: [Segment]
        let rest: PathSegment.Rank?

        enum Segment: Hashable {
            case literal([UInt8])
            case groups(PathSegment.Rank)
        }

        init(scheme: String?, host: String?, path: PathPattern) {
            (self.scheme, self.host, rest) = (scheme, host, path.rest)
            segments = path.segments.map { segment in
                if case .literal(let bytes) = segment { .literal(bytes) } else { .groups(segment.rank) }
            }
        }
    }
}

extension PathPattern {
    /// The kind of each group, in order: what patterns of equal rank share.
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
