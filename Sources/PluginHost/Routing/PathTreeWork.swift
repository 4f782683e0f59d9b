extension PathTree {
    /// How much a search takes here and below at most, found out anew.
    func exactWork() -> SearchWork {
        var behindLiterals = SearchWork()
        literals.visit { behindLiterals = behindLiterals.or($0.exactNodeWork) }
        return sum(behindLiterals + SearchWork(fixed: literals.work)) { $0.exactNodeWork }
    }

    func sumOfWork() -> SearchWork { sum(literalWork) { $0.nodeWork } }

    /// Whatever a dead end comes back to is added: a search may try all of it.
    private func sum(_ behindLiterals: SearchWork, _ work: (PathNode) -> SearchWork) -> SearchWork {
        var sum = SearchWork(fixed: SearchWork.visit) + behindLiterals
        for edge in [specific, general].joined() {
            switch edge.step {
            case .segment(_, let automaton, let child):
                sum += SearchWork(fixed: SearchWork.visit, perScalar: automaton.work.perScalar) + work(child)
            case .rest(_, let entry):
                sum += SearchWork(perScalar: entry.pattern.path?.work.perScalar ?? 0) + entry.work
            }
        }
        if let name { sum += work(name) }
        if let end { sum += work(end) }
        return sum
    }
}

extension PathNode {
    /// How much a search takes here and below at most.
    var nodeWork: SearchWork { entry?.work ?? tree?.work ?? .init() }
    fileprivate var exactNodeWork: SearchWork { entry?.work ?? tree?.exactWork() ?? .init() }
}

extension RouteEntry {
    /// How much it takes to tell what its groups take of a path that is its own.
    var work: SearchWork {
        let path = destination.hasPlaces ? SearchWork() : pattern.path?.work ?? SearchWork()
        // The path has been decided segment by segment, so this is done once, for the route that is found.
        return SearchWork(fixed: SearchWork.visit + destination.segmentCount, walk: path.perScalar + path.walk)
    }
}
