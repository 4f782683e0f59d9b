/// Which patterns match some of the same URLs and are equally specific, so that only their text decides.
struct Overlaps {
    private var pairs: [Int: [Int]] = [:]

    /// Compares patterns that begin alike: others differ in a segment that decides.
    init(_ patterns: [RoutePattern]) {
        let groups = Dictionary(grouping: patterns.indices.filter { patterns[$0].path != nil }) { index in
            Beginning(scheme: patterns[index].scheme, host: patterns[index].host?.text, path: patterns[index].path!)
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

    private struct Beginning: Hashable {
        let scheme: String?
        let host: String?
        /// The whole segments before the first group.
        let literal: [UInt32]

        init(scheme: String?, host: String?, path: PathPattern) {
            self.scheme = scheme
            self.host = host
            guard case .literal(let scalars) = path.parts.first?.matcher, path.parts.first?.modifier == .once else {
                literal = []
                return
            }
            let end = scalars.lastIndex(of: PathScalars.separator) ?? 0
            literal = path.parts.count == 1 ? scalars : Array(scalars[..<end])
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
