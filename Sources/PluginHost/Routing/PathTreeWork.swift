extension PathTree {
    /// Returns the maximum work that a search takes here and below, recomputed without the routes that were removed.
    func exactWork() -> SearchWork {
        var behindLiterals = SearchWork()
        literals.visit { behindLiterals = behindLiterals.or($0.exactNodeWork) }
        return sum(behindLiterals + SearchWork(fixed: literals.work)) { $0.exactNodeWork }
    }

    func sumOfWork() -> SearchWork { sum(literalWork) { $0.nodeWork } }

    /// Adds the work of all branches, since a search may backtrack and try each of them.
    private func sum(_ behindLiterals: SearchWork, _ work: (PathNode) -> SearchWork) -> SearchWork {
        var sum = SearchWork(fixed: SearchWork.visit) + behindLiterals
        func add(_ edges: [Edge]) {
            for edge in edges {
                switch edge.step {
                case .segment(_, let automaton, let child):
                    sum += SearchWork(fixed: SearchWork.visit, perScalar: automaton.work.perScalar) + work(child)
                case .rest(_, let variant, let entry):
                    let steps = entry.pattern.path?.automaton(ofVariant: variant).work.perScalar ?? 0
                    sum += SearchWork(fixed: SearchWork.visit, perScalar: steps) + entry.work
                }
            }
        }
        if !specific.isEmpty { add(specific) }
        if !general.isEmpty { add(general) }
        if let name { sum += work(name) }
        if let end { sum += work(end) }
        if case .rest(_, _, let entry)? = variantEnds.first?.step { sum += entry.work }
        return sum
    }
}

extension PathNode {
    /// The maximum work that a search takes here and below.
    var nodeWork: SearchWork { entry?.work ?? tree?.work ?? .init() }
    fileprivate var exactNodeWork: SearchWork { entry?.work ?? tree?.exactWork() ?? .init() }
}

extension RouteEntry {
    /// The work of finding the captures of the groups in a path that the entry matches.
    var work: SearchWork {
        let path = destination.capturesWholeSegments ? SearchWork() : pattern.path?.work ?? SearchWork()
        // The path was decided segment by segment, so this is done once, for the route that is found.
        return SearchWork(fixed: SearchWork.visit + destination.segmentCount, walk: path.perScalar + path.walk)
    }
}
