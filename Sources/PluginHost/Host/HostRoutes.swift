public import PluginABI
import Synchronization

/// A registered route.
public struct RouteStatus: Sendable {
    /// The pattern, as it was written.
    public let pattern: String
    /// The only method that the route answers; `nil` for every method.
    public let method: RouteMethod?
    /// The action that the route leads to: `target/action`, or `(closure)`.
    public let action: String
    /// The route's name for ``PluginHost/url(for:_:)``.
    public let name: String?
    /// A one-sentence description for people; may be empty.
    public let summary: String
    /// Values for parameters that neither the caller nor the URL provides.
    public let defaults: [String: Value]
    /// How the page that the action makes is shown when the URL comes from outside.
    public let transition: Transition
    /// The parameters for groups without a name, by the numbers of the groups.
    public let groups: [Int: String]
    /// The route's origin in words: a module, a file, or the program.
    public let owner: String
    /// Other, equally specific patterns with the same method that match some of the same URLs. The pattern whose text
    /// sorts first is tried first.
    public let overlaps: [String]
    /// Whether ``overlaps`` is complete. False if the pattern was not compared with every equally specific pattern,
    /// because comparing all routes would take too long.
    public let overlapsAreComplete: Bool
    /// The reason why the route is dead: no module offers its action, or the action does not take the route's groups or
    /// defaults. `nil` if it is not dead.
    public let problem: PluginError?
}

extension PluginHost {
    /// Every route, sorted by pattern. Finding the overlaps takes a few tenths of a second at most; see
    /// ``RouteStatus/overlapsAreComplete``.
    public var routes: [RouteStatus] {
        let table = calls.registry.table
        let entries = table.routes.table.all.sorted {
            ($0.pattern.text, $0.pattern.method?.number ?? 0) < ($1.pattern.text, $1.pattern.method?.number ?? 0)
        }
        let problems = Dictionary(table.deadRoutes.map { (ObjectIdentifier($0.route), $0.error) }) { first, _ in first }
        let overlaps = Overlaps(entries.map(\.pattern))
        return entries.enumerated().map { index, entry in
            RouteStatus(
                pattern: entry.pattern.text, method: entry.pattern.method, action: entry.destinationTitle,
                name: entry.name,
                summary: entry.summary, defaults: entry.defaults, transition: entry.transition,
                groups: entry.pattern.groups, owner: entry.owner.description,
                overlaps: overlaps.others(of: index).map { entries[$0].pattern.text },
                overlapsAreComplete: overlaps.isComplete(index), problem: problems[ObjectIdentifier(entry)])
        }
    }

    /// Adds a route of the program.
    ///
    /// - Parameters:
    ///   - pattern: The pattern, as in ``/PluginABI/Route``.
    ///   - action: `target/action`, of any module. It need not exist yet.
    ///   - name: The route's name for ``url(for:_:)``.
    ///   - summary: A one-sentence description for people.
    ///   - defaults: Values for parameters that neither the caller nor the URL provides.
    ///   - transition: How a navigator shows the page that the action makes when the URL comes from outside. Default:
    ///     it is not shown.
    ///   - groups: The parameters for groups without a name, by the numbers of the groups, as in ``/PluginABI/Route``.
    ///   - method: The only method that the route answers, as in ``/PluginABI/Route/method(_:)``. Default: every
    ///     method.
    /// - Throws: `invalidPattern`; `conflict` if the pattern or the name is already in use, or if finding the route of
    ///   a URL could take too long with this route (see <doc:URLs>).
    public func addRoute(
        _ pattern: String, to action: String, name: String? = nil, summary: String = "",
        defaults: NamedValues = [:], transition: Transition = .none,
        groups: [Int: String] = [:], method: RouteMethod? = nil
    ) throws(PluginError) {
        let entry = try entry(pattern, action, name, summary, defaults.get(), transition, groups, method)
        try changeRoutes { (routes, generations) throws(PluginError) in try routes.add(entry, generations) }
    }

    /// Adds a route of the program whose defaults are a map.
    @_documentation(visibility: internal) @_disfavoredOverload
    public func addRoute(
        _ pattern: String, to action: String, name: String? = nil, summary: String = "",
        defaults: [String: Value], transition: Transition = .none, groups: [Int: String] = [:]
    ) throws(PluginError) {
        try addRoute(
            pattern, to: action, name: name, summary: summary, defaults: NamedValues(defaults), transition: transition,
            groups: groups)
    }

    /// Adds routes of the program: all of them or, if one cannot be added, none.
    ///
    /// - Parameter routes: Patterns, and the action (`target/action`) that each leads to.
    /// - Throws: `invalidPattern`; `conflict` if a pattern is already in use, including by another one of these routes,
    ///   or if finding the route of a URL could take too long with them.
    public func addRoutes(_ routes: [(pattern: String, action: String)]) throws(PluginError) {
        var entries: [RouteEntry] = []
        entries.reserveCapacity(routes.count)
        for (pattern, action) in routes {
            entries.append(try entry(pattern, action, nil, "", [:], .none, after: entries.last))
        }
        try changeRoutes { (routes, generations) throws(PluginError) in
            for entry in entries { try routes.add(entry, generations) }
        }
    }

    /// Replaces the route that has this pattern and this method (or none), regardless of its owner, in one step.
    ///
    /// If it was a route of a module or a file, the program's route overrides it until the program's route is removed,
    /// even if the module is replaced or the file changes.
    ///
    /// - Throws: `invalidPattern`; `invalidURL` if there is no such route; `conflict` if the name is already in use.
    public func updateRoute(
        _ pattern: String, to action: String, name: String? = nil, summary: String = "",
        defaults: NamedValues = [:], transition: Transition = .none,
        groups: [Int: String] = [:], method: RouteMethod? = nil
    ) throws(PluginError) {
        let entry = try entry(pattern, action, name, summary, defaults.get(), transition, groups, method)
        try changeRoutes { (routes, generations) throws(PluginError) in
            guard let old = routes.table.entry(like: entry.pattern), old.pattern.method == method else {
                throw PluginError(.invalidURL, "There is no route “\(entry.pattern.title.shortened)” to update.")
            }
            let overridden = old.owner == .program ? old.overridden : old.owner
            try routes.replace(old, with: overridden.map(entry.overriding) ?? entry, generations)
        }
    }

    /// Replaces a route with one whose defaults are a map.
    @_documentation(visibility: internal) @_disfavoredOverload
    public func updateRoute(
        _ pattern: String, to action: String, name: String? = nil, summary: String = "",
        defaults: [String: Value], transition: Transition = .none, groups: [Int: String] = [:]
    ) throws(PluginError) {
        try updateRoute(
            pattern, to: action, name: name, summary: summary, defaults: NamedValues(defaults), transition: transition,
            groups: groups)
    }

    /// Removes the routes with this pattern, with or without the program's scheme, regardless of their owners and
    /// methods.
    ///
    /// A route of a module stays removed until the module is replaced, a route of a file until the file changes.
    ///
    /// - Returns: Whether there was such a route.
    @discardableResult
    public func removeRoute(_ pattern: String) -> Bool {
        guard let shape = try? RoutePattern(pattern, scheme: configuration.firstScheme) else { return false }
        return remove { table in
            var meant: [RouteEntry] = []
            for method in [nil] + RouteMethod.allCases {
                guard let route = table.entry(like: shape.answering(method)), !meant.contains(where: { $0 === route }),
                    route.pattern.text == pattern || route.pattern.names == shape.names
                else { continue }
                meant.append(route)
            }
            return meant
        } > 0
    }

    /// Removes all routes of a module.
    ///
    /// - Returns: The number of removed routes.
    @discardableResult
    public func removeRoutes(ofModule name: String) -> Int {
        remove { table in table.all.filter { $0.owner == .module(name) } }
    }

    private func remove(_ meant: (RouteTable) -> [RouteEntry]) -> Int {
        var count = 0
        try? changeRoutes { routes, generations in
            let meant = meant(routes.table)
            for route in meant { routes.remove(route, generations) }
            count = meant.count
        }
        if count > 0 { lifecycle.retryRefused() }
        return count
    }

    func changeRoutes(_ body: (inout Routes, [any RouteOwner]) throws(PluginError) -> Void) throws(PluginError) {
        try calls.registry.update { (table) throws(PluginError) in
            var routes = table.routes
            try body(&routes, table.routeOwners)
            return table.changed { $0.routes = routes }
        }
        lifecycle.tellDeclarationProblems()
    }

    private func entry(
        _ pattern: String, _ action: String, _ name: String?, _ summary: String, _ defaults: [String: Value],
        _ transition: Transition = .none, _ groups: [Int: String] = [:], _ method: RouteMethod? = nil,
        after previous: RouteEntry? = nil
    ) throws(PluginError) -> RouteEntry {
        try RouteEntry(
            try RoutePattern(pattern, scheme: configuration.firstScheme, after: previous?.pattern).naming(groups)
                .answering(method),
            to: action, name: name, summary: summary, defaults: defaults, transition: transition, owner: .program,
            after: previous)
    }

    /// Returns whether opening a URL would reach an action: whether the URL parses and resolves to an action or to a
    /// fallback (the target's `notFound`, or `onMissingTarget`), its parameters are valid, and the guard lets the
    /// call pass. Interceptors and the action itself can still refuse the call.
    ///
    /// - Parameters:
    ///   - url: A URL as for `open`.
    ///   - method: The method with which the URL is opened.
    ///   - parameters: Parameters as for `open`.
    ///   - origin: Whether the URL is opened by a remote caller.
    public func canOpen(
        _ url: String, method: RouteMethod = .get, _ parameters: Parameters = [:], origin: CallOrigin = .local
    ) -> Bool {
        (try? calls.checkOpen(url, parameters, isRemote: origin == .remote, method: method.number)) != nil
    }

    /// Explains what a URL leads to: which action, by which route and with which parameters, or why it leads to none.
    /// Also lists the other routes that match the URL, each with the rule by which another one precedes it. Calls no
    /// action, and does not ask the guard. A registered module that the URL leads to is started first, and the function
    /// blocks until then; for a remote caller, no module is started.
    ///
    /// - Parameters:
    ///   - url: A URL as for `open`.
    ///   - method: The method with which the URL is opened.
    ///   - parameters: Parameters as for `open`.
    ///   - origin: Whether the URL is opened by a remote caller, for which only remote actions exist.
    public func resolve(
        _ url: String, method: RouteMethod = .get, _ parameters: Parameters = [:], origin: CallOrigin = .local
    ) -> URLExplanation {
        calls.explain(url, parameters, isRemote: origin == .remote, method: method)
    }

    /// Finds where a URL leads, without calling anything: faster than opening it, and without the rest of what
    /// ``resolve(_:method:_:origin:)`` finds. Does not check parameters, and does not ask the guard. A registered
    /// module that the URL leads to is started first, and the function blocks until then; for a remote caller, no
    /// module is started.
    ///
    /// Opening the URL finds it again: if routes or modules have changed since then, it can lead elsewhere.
    ///
    /// - Parameters:
    ///   - url: A URL as for `open`.
    ///   - method: The method with which the URL is opened.
    ///   - origin: Whether the URL is opened by a remote caller, for which only remote actions exist.
    /// - Throws: The error that `open` would throw because the URL leads nowhere. Its message does not name the routes
    ///   that were passed over.
    public func destination(
        of url: String, method: RouteMethod = .get, origin: CallOrigin = .local
    ) throws(PluginError) -> URLDestination {
        try calls.destination(of: url, isRemote: origin == .remote, method: method)
    }

    /// Builds the URL of a route. Opening that URL reaches the same route with the same parameters.
    ///
    /// - Parameters:
    ///   - route: The name of a route, or a pattern.
    ///   - parameters: Values for the groups of the pattern. Other parameters that the action declares go into the
    ///     query.
    /// - Throws: `invalidURL` if no URL can be built from the pattern, or the URL would be too long;
    ///   `missingParameter`; `unknownParameter` for a parameter that is neither a group of the pattern nor declared by
    ///   the action; `mistypedParameter` for a value that a URL cannot carry; `conflict` if the URL with these values
    ///   would open another route that has precedence.
    public func url(for route: String, _ parameters: NamedValues = [:]) throws(PluginError) -> String {
        try calls.url(for: route, parameters.get())
    }

    /// Builds the URL of a route from a map.
    @_documentation(visibility: internal) @_disfavoredOverload
    public func url(for route: String, _ parameters: [String: Value]) throws(PluginError) -> String {
        try calls.url(for: route, parameters)
    }

    /// Returns the object that a URL addresses. If the action declares the parameter `_object`, it receives true for
    /// it.
    ///
    /// - Throws: The errors of `open`; `invalidResult` if the result is not an object.
    public func object(
        for url: String, _ parameters: Parameters = [:], origin: CallOrigin = .local, timeout: Duration? = nil
    ) async throws(PluginError) -> Object {
        try await program.object(for: url, parameters, origin: origin, timeout: timeout)
    }

    /// Sets the guard, which decides about calls from other programs; `nil` removes it.
    ///
    /// The guard is asked once for each opening of a URL by a remote caller, after the URL's route was found and its
    /// parameters were checked; also if the URL leads to nothing, so that the guard can redirect it. Without a guard,
    /// actions that demand something of other programs are refused to them.
    public func onRemoteCall(_ guardian: RemoteGuard?) {
        let forms = guardian.map { RemoteGuardForms(check: $0, decide: nil) }
        core.remoteGuard.withLock { $0 = forms }
    }

    /// Sets a guard with two forms. It can wait for something, such as a login, before a call continues.
    ///
    ///     host.onRemoteCall { call in
    ///         call.demands.contains("login") && !session.isOpen ? .ask : .pass
    ///     } asking: { call in
    ///         try await session.open() ? .pass : .refuse("Please log in first.")
    ///     }
    ///
    /// - Parameters:
    ///   - check: Decides immediately, without side effects; `canOpen` calls it, too.
    ///   - decide: Decides after `check` has returned ``RemoteDecision/ask``. It runs in a task, which is cancelled if
    ///     the caller no longer waits. The time that it takes counts towards the timeout of the opening, or, if there
    ///     is none, must not exceed ``HostConfiguration/asyncTimeout``.
    public func onRemoteCall(_ check: @escaping RemoteGuard, asking decide: @escaping AsynchronousRemoteGuard) {
        let forms = RemoteGuardForms(check: check, decide: decide)
        core.remoteGuard.withLock { $0 = forms }
    }
}
