import PluginABI

/// The route table: all routes, by scheme, host and path. If several routes match, the most specific one wins, whatever
/// the order of registration. Copies share unchanged parts. The routes for methods other than GET are in tables of
/// their own, so that finding the route of most URLs does not pass them.
struct RouteTable: Sendable {
    private(set) var root = Root()
    /// How many steps finding the route of a URL may take.
    let mostSteps: Int

    init(mostSteps: Int = SearchWork.most) { self.mostSteps = mostSteps }

    /// The number of routes.
    var count: Int { root.count }

    // These classes are changed only while they have one owner, hence @unchecked Sendable, and hence no checks of
    // exclusive access.

    final class Root: @unchecked Sendable {
        @exclusivity(unchecked) var schemes = PersistentMap<Unmanaged<Hosts>>()
        @exclusivity(unchecked) var anyScheme = Hosts()
        @exclusivity(unchecked) var fallbacks = PersistentMap<Unmanaged<RouteEntry>>()
        @exclusivity(unchecked) var names = PersistentMap<Unmanaged<RouteEntry>>()
        @exclusivity(unchecked) var count = 0
        /// The number of routes that override others.
        @exclusivity(unchecked) var overridingCount = 0
        /// The tables of the routes for methods other than GET, by method, without the names and numbers of the routes.
        @exclusivity(unchecked) var others: [RouteMethod: RouteTable] = [:]
        /// The maximum work that a search below any scheme takes.
        @exclusivity(unchecked) var schemeWork = SearchWork()

        init() {}

        init(copying other: Root) {
            schemes = PersistentMap(copying: other.schemes)
            anyScheme = other.anyScheme
            fallbacks = PersistentMap(copying: other.fallbacks)
            names = PersistentMap(copying: other.names)
            (count, overridingCount) = (other.count, other.overridingCount)
            others = other.others
            schemeWork = other.schemeWork
        }
    }

    final class Hosts: @unchecked Sendable {
        @exclusivity(unchecked) var literals = PersistentMap<Unmanaged<PathTree>>()
        /// The patterns of hosts with groups, in the order in which they were added.
        @exclusivity(unchecked) var patterns: [(PathPattern, PathTree)] = []
        /// The variants of `patterns`, the most specific ones first.
        @exclusivity(unchecked) var variants: [HostVariant] = []
        /// Whether `*` is the only one of `patterns`.
        @exclusivity(unchecked) var isForEveryHost = false
        @exclusivity(unchecked) var any = PathTree()
        /// The maximum work that a search below any literal host takes. It may include routes that were removed.
        @exclusivity(unchecked) var literalWork = SearchWork()
        /// The number of routes.
        @exclusivity(unchecked) var count = 0

        init() {}

        init(copying other: Hosts) {
            literals = PersistentMap(copying: other.literals)
            (patterns, variants, any) = (other.patterns, other.variants, other.any)
            (literalWork, count, isForEveryHost) = (other.literalWork, other.count, other.isForEveryHost)
        }
    }

    /// A variant of the pattern of a host.
    struct HostVariant {
        /// The index of the pattern.
        let pattern: Int
        let number: Int
        let specificity: [UInt8]
    }

    // MARK: Searching

    /// Returns the most specific route that matches, ignoring fallbacks; `nil` if there is none.
    @inline(__always)
    func match(_ url: URLText) -> RouteMatch? {
        var steps = 0
        return match(url, counting: &steps)
    }

    /// Returns the most specific route that matches, ignoring fallbacks; `nil` if there is none.
    ///
    /// - Parameters:
    ///   - choice: Decides which routes the search may find; `nil` for all.
    ///   - steps: Increased by the number of steps taken, as ``SearchWork`` counts them: at most ``mostSteps``.
    @inline(__always)
    func match(_ url: URLText, choosing choice: RouteChoice? = nil, counting steps: inout Int) -> RouteMatch? {
        Unmanaged.passUnretained(root)._withUnsafeGuaranteedRef { root in
            if let scheme = url.scheme, let hosts = root.schemes.find(scheme),
                let found = Hosts.match(url, in: hosts, choosing: choice, counting: &steps)
            {
                return found
            }
            return Hosts.match(url, in: .passUnretained(root.anyScheme), choosing: choice, counting: &steps)
        }
    }

    /// Returns the most specific of the matching routes, ignoring fallbacks, for which `isWanted` returns true.
    ///
    /// - Parameters:
    ///   - steps: Increased by the number of steps taken: at most ``mostSteps``.
    ///   - isWanted: Receives routes that match, some of them more than once. If it returns false for each, it receives
    ///     all of them.
    func match(
        _ url: URLText, counting steps: inout Int, where isWanted: (RouteEntry) -> Bool
    ) -> RouteMatch? {
        withoutActuallyEscaping(isWanted) { isWanted in
            withUnsafePointer(to: isWanted) { choice in match(url, choosing: choice, counting: &steps) }
        }
    }

    /// Returns the fallback of the URL's scheme.
    func fallback(_ url: URLText) -> RouteMatch? {
        url.scheme.flatMap { root.fallbacks.find($0) }.map { entry in
            RouteMatch(entry: entry, destination: .passUnretained(entry.takeUnretainedValue().destination), groups: [])
        }
    }

    /// Returns the route with a name.
    func named(_ name: String) -> RouteEntry? { name.withRawText { root.names.find($0)?.takeUnretainedValue() } }

    /// The names of the routes that have one, in no particular order.
    var routeNames: [String] {
        var names: [String] = []
        root.names.visit { if let name = $0.name { names.append(name) } }
        return names
    }

    /// Returns whether any route has this scheme.
    func hasRoutes(withScheme scheme: RawText) -> Bool {
        if root.others.values.contains(where: { $0.hasRoutes(withScheme: scheme) }) { return true }
        if root.fallbacks.find(scheme) != nil { return true }
        return (root.schemes.find(scheme)?.takeUnretainedValue().count ?? 0) > 0
    }

    /// Returns the route whose pattern has the same shape. For a pattern for GET, that may be a route for every method,
    /// and the other way round.
    func entry(like pattern: RoutePattern) -> RouteEntry? {
        if let method = pattern.separateMethod { return root.others[method]?.own(like: pattern) }
        return own(like: pattern)
    }

    /// Returns the route whose pattern has the same shape, in the table itself.
    func own(like pattern: RoutePattern) -> RouteEntry? {
        guard let path = pattern.path else {
            return pattern.scheme?.withRawText { root.fallbacks.find($0)?.takeUnretainedValue() }
        }
        guard let scheme = pattern.scheme else { return root.anyScheme.entry(like: pattern.host, path) }
        return scheme.withRawText { root.schemes.find($0)?.takeUnretainedValue().entry(like: pattern.host, path) }
    }

    /// All routes, in no particular order.
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
        for table in root.others.values { all += table.all }
        return all
    }

    // MARK: Changing

    /// The reason why a route cannot be added.
    enum Conflict {
        /// Another route has the same pattern.
        case pattern(RouteEntry)
        /// Another route has the same name.
        case name(RouteEntry)
        /// With the route, a URL could take too many steps. Carries the number of steps and the existing route that
        /// takes most of them, if there is one.
        case work(Int, RouteEntry?)

        /// The existing route that prevents the addition; `nil` if there is none.
        var other: RouteEntry? {
            switch self {
            case .pattern(let other), .name(let other): other
            case .work(_, let other): other
            }
        }
    }

    /// Adds a route, unless its pattern or name is in use, or a URL would take too long with it.
    ///
    /// - Parameter isKnown: Whether the route was added before to a table with all other routes. If so, the table does
    ///   not check whether a URL would take too long.
    /// - Returns: The reason why the route was not added; `nil` if it was added.
    mutating func insert(_ entry: RouteEntry, isKnown: Bool = false) -> Conflict? {
        if let name = entry.name, let other = named(name) { return .name(other) }
        if let other = otherMethod(like: entry.pattern) { return .pattern(other) }
        var conflict: Conflict?
        update(entry.pattern) { existing in
            if let existing { conflict = .pattern(existing) } else { existing = entry }
        }
        if conflict != nil { return conflict }
        if !isKnown, let steps = excess(with: entry.pattern) {
            update(entry.pattern) { $0 = nil }
            return .work(steps, costliest(near: entry.pattern))
        }
        if let name = entry.name { name.withRawText { root.names.update($0) { $0 = entry } } }
        root.count += 1
        if entry.overridden != nil { root.overridingCount += 1 }
        return nil
    }

    /// Removes a route if the table contains it.
    mutating func remove(_ entry: RouteEntry) {
        var isThere = false
        update(entry.pattern) { existing in
            isThere = existing === entry
            if isThere { existing = nil }
        }
        guard isThere else { return }
        if let name = entry.name { name.withRawText { root.names.update($0) { $0 = nil } } }
        root.count -= 1
        if entry.overridden != nil { root.overridingCount -= 1 }
    }

    /// Changes the entry of a pattern, in the table for its method. `change` receives `nil` if there is none, and sets
    /// `nil` to remove it.
    private mutating func update(_ pattern: RoutePattern, _ change: (inout RouteEntry?) -> Void) {
        if !isKnownUniquelyReferenced(&root) { root = Root(copying: root) }
        guard let method = pattern.separateMethod else { return updateOwn(pattern, change) }
        root.others[method, default: RouteTable(mostSteps: mostSteps)].updateOwn(pattern, change)
    }

    private mutating func updateOwn(_ pattern: RoutePattern, _ change: (inout RouteEntry?) -> Void) {
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
            root.schemeWork = root.schemeWork.or(
                root.schemes.find(scheme)?._withUnsafeGuaranteedRef { $0.work } ?? .init())
        }
    }
}

extension RouteTable.Hosts {
    @inline(__always)
    static func match(
        _ url: URLText, in hosts: Unmanaged<RouteTable.Hosts>, choosing choice: RouteChoice?, counting steps: inout Int
    ) -> RouteMatch? {
        hosts._withUnsafeGuaranteedRef { hosts in
            if let host = url.host {
                if let tree = hosts.literals.find(host),
                    let found = PathTree.match(url, in: tree, choosing: choice, counting: &steps)
                {
                    return found
                }
                if !hosts.patterns.isEmpty, let found = hosts.matchPatterns(host, url, choice, &steps) { return found }
            }
            return PathTree.match(url, in: .passUnretained(hosts.any), choosing: choice, counting: &steps)
        }
    }

    /// Searches below the patterns that match a host, the most specific ones first. If equally specific ones lead to an
    /// entry, the paths of the entries decide.
    private func matchPatterns(
        _ host: RawText, _ url: URLText, _ choice: RouteChoice?, _ steps: inout Int
    ) -> RouteMatch? {
        if isForEveryHost { return matchEveryHost(host, url, choice, &steps) }
        let scalars = PathScalars.scalars(host)
        var best: (found: PathTree.Found, specificity: [UInt8])?
        var searched: Set<Int> = []
        for variant in variants {
            if let best, best.specificity != variant.specificity { break }
            let (pattern, tree) = patterns[variant.pattern]
            let automaton = pattern.automaton(ofVariant: variant.number)
            guard scalars.withUnsafeBufferPointer({ automaton.accepts($0, counting: &steps) }),
                searched.insert(variant.pattern).inserted,
                let found = PathTree.find(url, in: .passUnretained(tree), choosing: choice, counting: &steps)
            else { continue }
            steps &+= SearchWork.visit
            if best.map({ found.precedes($0.found) }) ?? true { best = (found, variant.specificity) }
        }
        guard let best else { return nil }
        var match = PathTree.match(best.found, url, counting: &steps)
        let entry = match.entry.takeUnretainedValue()
        // The captures of the host's groups are found only for the entry that was found.
        let taken = scalars.withUnsafeBufferPointer { entry.pattern.host?.automaton.match($0, counting: &steps) }
        let groups = match.groups ?? entry.taken(url)
        match.groups = PathScalars.texts(taken ?? [], of: host, scalars) + groups
        return match
    }

    /// Searches below the pattern `*`, if it is the only one: the host need not be matched, and its group captures all of
    /// it. Most routes of HTTP are for every host.
    private func matchEveryHost(
        _ host: RawText, _ url: URLText, _ choice: RouteChoice?, _ steps: inout Int
    ) -> RouteMatch? {
        guard let found = PathTree.find(url, in: .passUnretained(patterns[0].1), choosing: choice, counting: &steps)
        else { return nil }
        var match = PathTree.match(found, url, counting: &steps)
        match.groups = [host] + (match.groups ?? match.entry.takeUnretainedValue().taken(url))
        return match
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
        var added = 0
        hosts.update(host, path) { entry in
            let before = entry == nil ? 0 : 1
            change(&entry)
            added = (entry == nil ? 0 : 1) - before
        }
        hosts.count += added
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
                let below = literals.find(literal)?._withUnsafeGuaranteedRef { $0.work } ?? SearchWork()
                literalWork = literalWork.or(SearchWork(fixed: literals.work(of: literal)) + below)
            }
            return
        }
        let shape = host.shape
        let known = patterns.firstIndex { $0.0.shape == shape }
        let index = known ?? patterns.endIndex
        if known == nil {
            patterns.append((host, PathTree()))
            isForEveryHost = patterns.count == 1 && host.capturesEverything
            variants += host.variantNumbers.map { number in
                .init(pattern: index, number: number, specificity: host.specificity(ofVariant: number))
            }
            variants.sort { $0.specificity.lexicographicallyPrecedes($1.specificity) }
        }
        PathTree.update(&patterns[index].1, path, change)
    }
}

extension PathPattern {
    /// Whether the pattern matches only an empty component.
    fileprivate var isEmpty: Bool { literal?.isEmpty == true }

    /// Whether the pattern is a single group that captures anything: `*`.
    fileprivate var capturesEverything: Bool {
        guard let part = parts.first, parts.count == 1 else { return false }
        return part.matcher == .anything && part.modifier == .once && part.prefix.isEmpty && part.suffix.isEmpty
    }

    var isLiteral: Bool { literal != nil }

    /// The bytes of a host without groups.
    fileprivate var literal: [UInt8]? {
        guard segments.count == 1, rest == nil, variants.isEmpty, case .literal(let text) = segments[0] else {
            return nil
        }
        return text
    }
}
