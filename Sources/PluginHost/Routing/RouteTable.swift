import PluginABI

/// All routes, by scheme, host and path. Where several match, the most specific one wins, whatever the order of
/// registration. A copy shares what it can with the table that it was made of.
struct RouteTable: Sendable {
    private(set) var root = Root()
    /// How many steps finding the route of a URL may take.
    let mostSteps: Int

    init(mostSteps: Int = SearchWork.most) { self.mostSteps = mostSteps }

    /// Of all routes.
    var count: Int { root.count }

    // Written only while they have one owner, hence @unchecked Sendable; and hence without checks of exclusive access.

    final class Root: @unchecked Sendable {
        @exclusivity(unchecked) var schemes = PersistentMap<Unmanaged<Hosts>>()
        @exclusivity(unchecked) var anyScheme = Hosts()
        @exclusivity(unchecked) var fallbacks = PersistentMap<Unmanaged<RouteEntry>>()
        @exclusivity(unchecked) var names = PersistentMap<Unmanaged<RouteEntry>>()
        @exclusivity(unchecked) var count = 0
        /// How much a search behind a scheme takes at most, of all schemes.
        @exclusivity(unchecked) var schemeWork = SearchWork()

        init() {}

        init(copying other: Root) {
            schemes = PersistentMap(copying: other.schemes)
            anyScheme = other.anyScheme
            fallbacks = PersistentMap(copying: other.fallbacks)
            names = PersistentMap(copying: other.names)
            count = other.count
            schemeWork = other.schemeWork
        }
    }

    final class Hosts: @unchecked Sendable {
        @exclusivity(unchecked) var literals = PersistentMap<Unmanaged<PathTree>>()
        /// In order of their text.
        @exclusivity(unchecked) var patterns: [(PathPattern, PathTree)] = []
        @exclusivity(unchecked) var any = PathTree()
        /// How much a search behind a literal host takes at most, of all such hosts. What was removed may still be part of
        /// it.
        @exclusivity(unchecked) var literalWork = SearchWork()

        init() {}

        init(copying other: Hosts) {
            literals = PersistentMap(copying: other.literals)
            (patterns, any, literalWork) = (other.patterns, other.any, other.literalWork)
        }
    }

    // MARK: Searching

    /// The most specific route that matches, without the fallbacks; nil if there is none.
    @inline(__always)
    func match(_ url: URLText) -> RouteMatch? {
        var steps = 0
        return match(url, counting: &steps)
    }

    /// - Parameter steps: Raised by the number of steps that it took, as ``SearchWork`` counts them: at most those that
    ///   registration allows.
    @inline(__always)
    func match(_ url: URLText, counting steps: inout Int) -> RouteMatch? {
        Unmanaged.passUnretained(root)._withUnsafeGuaranteedRef { root in
            if let scheme = url.scheme, let hosts = root.schemes.find(scheme),
                let found = Hosts.match(url, in: hosts, counting: &steps)
            {
                return found
            }
            return Hosts.match(url, in: .passUnretained(root.anyScheme), counting: &steps)
        }
    }

    /// The fallback of the URL's scheme.
    func fallback(_ url: URLText) -> RouteMatch? {
        url.scheme.flatMap { root.fallbacks.find($0) }.map { entry in
            RouteMatch(entry: entry, destination: .passUnretained(entry.takeUnretainedValue().destination), groups: [])
        }
    }

    /// The route of a name.
    func named(_ name: String) -> RouteEntry? { name.withRawText { root.names.find($0)?.takeUnretainedValue() } }

    /// The route whose pattern has the shape of another one.
    func entry(like pattern: RoutePattern) -> RouteEntry? {
        guard let path = pattern.path else {
            return pattern.scheme?.withRawText { root.fallbacks.find($0)?.takeUnretainedValue() }
        }
        guard let scheme = pattern.scheme else { return root.anyScheme.entry(like: pattern.host, path) }
        return scheme.withRawText { root.schemes.find($0)?.takeUnretainedValue().entry(like: pattern.host, path) }
    }

    /// In no order.
    var all: [RouteEntry] {
        var all: [RouteEntry] = []
        all.reserveCapacity(count)
        root.fallbacks.visit { all.append($0) }
        func add(_ hosts: Hosts) {
            hosts.any.visit { all.append($0) }
            hosts.literals.visit { $0.visit { all.append($0) } }
            for (_, tree) in hosts.patterns { tree.visit { all.append($0) } }
        }
        add(root.anyScheme)
        root.schemes.visit(add)
        return all
    }

    // MARK: Changing

    /// Why a route cannot be added.
    enum Conflict {
        /// Another one has the pattern.
        case pattern(RouteEntry)
        /// Another one has the name.
        case name(RouteEntry)
        /// A URL could take too long with it: how many steps, and the one that takes most of those that are there; nil
        /// where none takes any.
        case work(Int, RouteEntry?)

        /// The other route.
        var other: RouteEntry? {
            switch self {
            case .pattern(let other), .name(let other): other
            case .work(_, let other): other
            }
        }
    }

    /// Adds a route, if neither its pattern nor its name is taken, and no URL takes too long with it.
    ///
    /// - Parameter isKnown: Whether it was added before to a table with all the others: then it is not asked whether a URL
    ///   takes too long.
    mutating func insert(_ entry: RouteEntry, isKnown: Bool = false) -> Conflict? {
        if let name = entry.name, let other = named(name) { return .name(other) }
        var conflict: Conflict?
        update(entry.pattern) { place in
            if let place { conflict = .pattern(place) } else { place = entry }
        }
        if conflict != nil { return conflict }
        if !isKnown, let steps = excess(with: entry.pattern) {
            update(entry.pattern) { $0 = nil }
            return .work(steps, costliest(near: entry.pattern))
        }
        if let name = entry.name { name.withRawText { root.names.update($0) { $0 = entry } } }
        root.count += 1
        return nil
    }

    /// Takes a route away, if it is there.
    mutating func remove(_ entry: RouteEntry) {
        var isThere = false
        update(entry.pattern) { place in
            isThere = place === entry
            if isThere { place = nil }
        }
        guard isThere else { return }
        if let name = entry.name { name.withRawText { root.names.update($0) { $0 = nil } } }
        root.count -= 1
    }

    /// Changes the entry of a pattern, which is nil where there is none.
    private mutating func update(_ pattern: RoutePattern, _ change: (inout RouteEntry?) -> Void) {
        if !isKnownUniquelyReferenced(&root) { root = Root(copying: root) }
        guard let path = pattern.path else {
            pattern.scheme?.withRawText { root.fallbacks.update($0, change) }
            return
        }
        guard let scheme = pattern.scheme else { return Hosts.update(&root.anyScheme, pattern.host, path, change) }
        scheme.withRawText { scheme in
            root.schemes.update(scheme) { hosts in
                var changed = hosts.take() ?? Hosts()
                Hosts.update(&changed, pattern.host, path, change)
                hosts = changed
            }
            root.schemeWork = root.schemeWork.or(root.schemes.find(scheme)?.takeUnretainedValue().work ?? .init())
        }
    }
}

extension RouteTable.Hosts {
    @inline(__always)
    static func match(
        _ url: URLText, in hosts: Unmanaged<RouteTable.Hosts>, counting steps: inout Int
    ) -> RouteMatch? {
        hosts._withUnsafeGuaranteedRef { hosts in
            if let host = url.host {
                if let tree = hosts.literals.find(host), let found = PathTree.match(url, in: tree, counting: &steps) {
                    return found
                }
                if !hosts.patterns.isEmpty, let found = hosts.matchPatterns(host, url, &steps) { return found }
            }
            return PathTree.match(url, in: .passUnretained(hosts.any), counting: &steps)
        }
    }

    private func matchPatterns(_ host: RawText, _ url: URLText, _ steps: inout Int) -> RouteMatch? {
        let scalars = PathScalars.scalars(host)
        for (pattern, tree) in patterns {
            let automaton = pattern.automaton
            // What the groups of the host take is asked once something is found behind it.
            guard scalars.withUnsafeBufferPointer({ automaton.accepts($0, counting: &steps) }),
                var found = PathTree.match(url, in: .passUnretained(tree), counting: &steps),
                let taken = scalars.withUnsafeBufferPointer({ automaton.match($0, counting: &steps) })
            else { continue }
            let groups = found.groups ?? found.entry.takeUnretainedValue().taken(url)
            found.groups = PathScalars.texts(taken, of: host, scalars) + groups
            return found
        }
        return nil
    }

    func entry(like host: PathPattern?, _ path: PathPattern) -> RouteEntry? {
        guard let host, !host.isEmpty else { return any.entry(like: path) }
        if let literal = host.literal {
            return literal.withUnsafeBufferPointer { literals.find($0)?.takeUnretainedValue().entry(like: path) }
        }
        let shape = host.shape
        return patterns.first { $0.0.shape == shape }?.1.entry(like: path)
    }

    static func update(
        _ hosts: inout RouteTable.Hosts, _ host: PathPattern?, _ path: PathPattern,
        _ change: (inout RouteEntry?) -> Void
    ) {
        if !isKnownUniquelyReferenced(&hosts) { hosts = RouteTable.Hosts(copying: hosts) }
        hosts.update(host, path, change)
    }

    private func update(_ host: PathPattern?, _ path: PathPattern, _ change: (inout RouteEntry?) -> Void) {
        guard let host, !host.isEmpty else { return PathTree.update(&any, path, change) }
        if let literal = host.literal {
            literal.withUnsafeBufferPointer { literal in
                literals.update(literal) { tree in
                    var changed = tree.take() ?? PathTree()
                    PathTree.update(&changed, path, change)
                    tree = changed
                }
                let tree = literals.find(literal)?.takeUnretainedValue()
                let search = SearchWork(fixed: literals.work(of: literal))
                literalWork = literalWork.or(search + (tree?.work ?? .init()))
            }
            return
        }
        let shape = host.shape
        var place = patterns.firstIndex { $0.0.shape == shape }
        if place == nil {
            place = patterns.firstIndex { host.text < $0.0.text } ?? patterns.endIndex
            patterns.insert((host, PathTree()), at: place!)
        }
        PathTree.update(&patterns[place!].1, path, change)
        if host.text < patterns[place!].0.text {
            patterns[place!].0 = host
            patterns.sort { $0.0.text < $1.0.text }
        }
    }
}

extension PathPattern {
    /// Whether it matches nothing but an empty component.
    fileprivate var isEmpty: Bool { segments == [.literal([])] && rest == nil }

    var isLiteral: Bool { literal != nil }

    /// The bytes of a host without groups.
    fileprivate var literal: [UInt8]? {
        guard segments.count == 1, rest == nil, case .literal(let text) = segments[0] else { return nil }
        return text
    }
}
