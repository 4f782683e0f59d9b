import PluginABI

/// The pairs of patterns that match some of the same URLs and are equally specific, so that only their text decides.
struct Overlaps {
    private var pairs: [Int: Set<Int>] = [:]
    /// The patterns that were not compared with all others of their rank.
    private var unfinished: Set<Int> = []

    /// How many steps all comparisons of a listing may take together: a few tenths of a second.
    static let mostSteps = 5_000_000

    /// Compares patterns that are equally specific and answer the same methods. Between other patterns, a segment or
    /// the method decides.
    ///
    /// - Parameter budget: How many steps the comparisons may take. Patterns that remain after these are not compared.
    init(_ patterns: [RoutePattern], within budget: Int = Overlaps.mostSteps) {
        var budget = budget
        var groups: [Rank: [Variant]] = [:]
        var order: [Rank] = []
        for (index, pattern) in patterns.enumerated() {
            guard let path = pattern.path else { continue }
            for host in pattern.host?.variantNumbers ?? 0..<1 {
                for number in path.variantNumbers {
                    let rank = Rank(pattern, path, host: host, path: number)
                    if groups[rank] == nil { order.append(rank) }
                    groups[rank, default: []].append(Variant(pattern: index, host: host, path: number))
                }
            }
        }
        for rank in order { compare(groups[rank]!, patterns, &budget) }
    }

    /// The indices of a pattern, of a variant of its host and of a variant of its path.
    private struct Variant {
        let pattern: Int
        let host: Int
        let path: Int
    }

    private mutating func compare(_ group: [Variant], _ patterns: [RoutePattern], _ budget: inout Int) {
        guard group.count > 1, group.contains(where: { $0.pattern != group[0].pattern }) else { return }
        // Paths of literals and whole segments that are equally specific match the same paths.
        let paths = group.map { variant -> Automaton? in
            let path = patterns[variant.pattern].path!
            return path.isPlain ? nil : path.automaton(ofVariant: variant.path)
        }
        let hosts = group.map { variant -> Automaton? in
            guard let host = patterns[variant.pattern].host, !host.isLiteral else { return nil }
            return host.automaton(ofVariant: variant.host)
        }
        for index in group.indices {
            for other in group.indices[(index + 1)...] {
                let (one, another) = (group[index].pattern, group[other].pattern)
                if one == another || pairs[one]?.contains(another) == true { continue }
                budget -= 1
                var overlap = Self.overlap(paths[index], paths[other], &budget)
                if overlap == .some { overlap = Self.overlap(hosts[index], hosts[other], &budget) }
                switch overlap {
                case .none: continue
                case .some:
                    pairs[one, default: []].insert(another)
                    pairs[another, default: []].insert(one)
                case .unknown: unfinished.formUnion([one, another])
                }
            }
            if budget < 0 { return unfinished.formUnion(group[index...].map(\.pattern)) }
        }
    }

    private static func overlap(_ one: Automaton?, _ other: Automaton?, _ budget: inout Int) -> Automaton.Overlap {
        guard budget >= 0 else { return .unknown }
        guard let one, let other else { return .some }
        return one.overlaps(other, within: &budget)
    }

    func others(of index: Int) -> [Int] { (pairs[index] ?? []).sorted() }

    /// Returns whether a pattern was compared with all others of its rank.
    func isComplete(_ index: Int) -> Bool { !unfinished.contains(index) }

    /// The criteria that decide between patterns before their text does.
    private struct Rank: Hashable {
        let method: RouteMethod?
        let scheme: String?
        let host: Component?
        let path: Component

        struct Component: Hashable {
            let specificity: [UInt8]
            let literals: [[UInt8]]

            init(_ pattern: PathPattern, _ variant: Int) {
                specificity = pattern.specificity(ofVariant: variant)
                literals = pattern.segments(ofVariant: variant).compactMap { segment in
                    if case .literal(let bytes) = segment { bytes } else { nil }
                }
            }
        }

        init(_ pattern: RoutePattern, _ path: PathPattern, host hostNumber: Int, path pathNumber: Int) {
            method = pattern.method
            scheme = pattern.scheme
            host = pattern.host.map { Component($0, hostNumber) }
            self.path = Component(path, pathNumber)
        }
    }
}
