extension RouteTable {
    /// Returns the number of steps of the slowest URL that a pattern may affect, if they are too many; otherwise `nil`.
    /// The tables of all methods count together, since a URL may be searched in each of them.
    func excess(with pattern: RoutePattern) -> Int? {
        guard pattern.path != nil else { return nil }
        func sum(_ steps: (RouteTable) -> Int) -> Int { root.others.values.reduce(steps(self)) { $0 + steps($1) } }
        // The known work may include routes that were removed, so it is recomputed if it exceeds the limit.
        guard sum({ $0.steps(near: pattern, \.work, $0.root.schemeWork) }) > mostSteps else { return nil }
        let exact = sum { $0.steps(near: pattern, \.exactWork, $0.exactSchemeWork) }
        return exact > mostSteps ? exact : nil
    }

    /// Returns the steps of the slowest URL that a pattern may affect, in this table alone.
    private func steps(
        near pattern: RoutePattern, _ work: (Hosts) -> SearchWork, _ allSchemes: @autoclosure () -> SearchWork
    ) -> Int {
        let hosts = pattern.scheme.map { $0.withRawText { root.schemes.find($0)?.takeUnretainedValue() } }
        let below = hosts.map { $0.map(work) ?? SearchWork() } ?? allSchemes()
        return (below + work(root.anyScheme)).steps
    }

    /// The maximum work that a search below any scheme takes, recomputed without the routes that were removed.
    private var exactSchemeWork: SearchWork {
        var most = SearchWork()
        root.schemes.visit { most = most.or($0.exactWork) }
        return most
    }

    /// Returns the route that takes the most steps among those that a URL of a pattern may reach. Routes of files are
    /// preferred, since they yield to others.
    func costliest(near pattern: RoutePattern) -> RouteEntry? {
        var costliest: RouteEntry?
        func rank(_ entry: RouteEntry) -> (Int, Int) {
            (entry.owner.isFile ? 1 : 0, entry.work.steps + (entry.pattern.host?.work.steps ?? 0))
        }
        for entry in all where entry.pattern.path != nil {
            if let scheme = pattern.scheme, let other = entry.pattern.scheme, scheme != other { continue }
            if let host = pattern.host, let other = entry.pattern.host, host.isLiteral, other.isLiteral,
                host.text != other.text
            {
                continue
            }
            if let known = costliest, rank(known) >= rank(entry) { continue }
            costliest = entry
        }
        return costliest
    }
}

extension RouteTable.Hosts {
    /// The maximum work that a search takes here. It may include routes that were removed.
    var work: SearchWork { sum(literalWork, \.work) }

    /// The maximum work that a search takes here, recomputed without the routes that were removed.
    fileprivate var exactWork: SearchWork {
        var behindLiterals = SearchWork()
        literals.visit { behindLiterals = behindLiterals.or($0.exactWork()) }
        return sum(behindLiterals + SearchWork(fixed: literals.work)) { $0.exactWork() }
    }

    private func sum(_ behindLiterals: SearchWork, _ work: (PathTree) -> SearchWork) -> SearchWork {
        patterns.reduce(behindLiterals + work(any)) { sum, pattern in
            let host = pattern.0.work
            // The automaton decides before the search below it, and finds the captures afterwards.
            return sum + work(pattern.1)
                + SearchWork(
                    fixed: SearchWork.visit, perScalar: pattern.0.stepsOfVariants, walk: host.perScalar + host.walk)
        }
    }
}
