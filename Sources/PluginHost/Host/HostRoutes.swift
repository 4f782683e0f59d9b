public import PluginABI
import Synchronization

/// A route, as it is registered.
public struct RouteStatus: Sendable {
    /// The pattern, as it was written.
    public let pattern: String
    /// What it leads to: `target/action`.
    public let action: String
    /// What ``PluginHost/url(for:_:)`` may call it by.
    public let name: String?
    /// One sentence for people; may be empty.
    public let summary: String
    /// Values of parameters that neither the caller nor the URL gives.
    public let defaults: [String: Value]
    /// Where it comes from, in words: a module, a file, the program.
    public let owner: String
    /// Other patterns that match some of its URLs and are as specific; the one whose text sorts first is tried first.
    public let overlaps: [String]
    /// Whether ``overlaps`` are all there are. False where the pattern was not compared with all others that are as specific,
    /// because comparing all routes would take too long.
    public let overlapsAreComplete: Bool
}

extension PluginHost {
    /// Every route, sorted by pattern. Looking for overlaps takes some tenths of a second at most; see
    /// ``RouteStatus/overlapsAreComplete``.
    public var routes: [RouteStatus] {
        let entries = calls.registry.table.routes.table.all.sorted { $0.pattern.text < $1.pattern.text }
        let overlaps = Overlaps(entries.map(\.pattern))
        return entries.enumerated().map { index, entry in
            RouteStatus(
                pattern: entry.pattern.text, action: "\(entry.target)/\(entry.action)", name: entry.name,
                summary: entry.summary, defaults: entry.defaults, owner: entry.owner.description,
                overlaps: overlaps.others(of: index).map { entries[$0].pattern.text },
                overlapsAreComplete: overlaps.isComplete(index))
        }
    }

    /// Adds a route of the program.
    ///
    /// - Parameters:
    ///   - pattern: As in ``/PluginABI/Route``.
    ///   - action: `target/action`, of any module; it need not be there yet.
    ///   - name: What ``url(for:_:)`` may call it by.
    ///   - summary: One sentence for people.
    ///   - defaults: Values of parameters that neither the caller nor the URL gives.
    /// - Throws: `invalidPattern`; `conflict` when the pattern or the name is taken, or when finding the route of a URL
    ///   could take too long with it (see <doc:URLs>).
    public func addRoute(
        _ pattern: String, to action: String, name: String? = nil, summary: String = "",
        defaults: [String: Value] = [:]
    ) throws(PluginError) {
        let entry = try entry(pattern, action, name, summary, defaults)
        try calls.registry.update { (table) throws(PluginError) in
            var routes = table.routes
            try routes.add(entry, table.generations)
            return table.changed { $0.routes = routes }
        }
        tellRouteProblems()
    }

    /// Adds routes of the program, all of them or, when one cannot be added, none.
    ///
    /// - Parameter routes: Patterns, and the action (`target/action`) that each leads to.
    /// - Throws: `invalidPattern`; `conflict` when a pattern is taken, also by another one of these, or when finding the
    ///   route of a URL could take too long with them.
    public func addRoutes(_ routes: [(pattern: String, action: String)]) throws(PluginError) {
        var entries: [RouteEntry] = []
        entries.reserveCapacity(routes.count)
        for (pattern, action) in routes {
            entries.append(try entry(pattern, action, nil, "", [:], after: entries.last))
        }
        try calls.registry.update { (table) throws(PluginError) in
            var routes = table.routes
            for entry in entries { try routes.add(entry, table.generations) }
            return table.changed { $0.routes = routes }
        }
        tellRouteProblems()
    }

    /// Puts a route in the place of the one that has this pattern, whoever registered it, in one step.
    ///
    /// Where that was a route of a module or a file, the program's stands in its place until it is removed, also when
    /// the module is replaced or the file changes.
    ///
    /// - Throws: `invalidPattern`; `invalidURL` when there is no such route; `conflict` when the name is taken.
    public func updateRoute(
        _ pattern: String, to action: String, name: String? = nil, summary: String = "",
        defaults: [String: Value] = [:]
    ) throws(PluginError) {
        let entry = try entry(pattern, action, name, summary, defaults)
        try calls.registry.update { (table) throws(PluginError) in
            guard let old = table.routes.table.entry(like: entry.pattern) else {
                throw PluginError(.invalidURL, "There is no route “\(pattern.shortened)” that could be updated.")
            }
            var routes = table.routes
            let overridden = old.owner == .program ? old.overridden : old.owner
            try routes.replace(old, with: overridden.map(entry.overriding) ?? entry, table.generations)
            return table.changed { $0.routes = routes }
        }
        tellRouteProblems()
    }

    /// Removes the route with exactly this pattern, whoever registered it.
    ///
    /// A route of a module stays removed until the module is replaced, one of a file until the file changes.
    ///
    /// - Returns: Whether there was one.
    @discardableResult
    public func removeRoute(_ pattern: String) -> Bool {
        guard let shape = try? RoutePattern(pattern) else { return false }
        return remove { table in
            table.entry(like: shape).flatMap { $0.pattern.text == pattern ? [$0] : nil } ?? []
        } > 0
    }

    /// Removes all routes of a module.
    ///
    /// - Returns: How many there were.
    @discardableResult
    public func removeRoutes(ofModule name: String) -> Int {
        remove { table in table.all.filter { $0.owner == .module(name) } }
    }

    private func remove(_ meant: (RouteTable) -> [RouteEntry]) -> Int {
        var count = 0
        try? calls.registry.update { table in
            var routes = table.routes
            let meant = meant(routes.table)
            for route in meant { routes.remove(route, table.generations) }
            count = meant.count
            return table.changed { $0.routes = routes }
        }
        tellRouteProblems()
        if count > 0 { lifecycle.retryRefused() }
        return count
    }

    private func entry(
        _ pattern: String, _ action: String, _ name: String?, _ summary: String, _ defaults: [String: Value],
        after previous: RouteEntry? = nil
    ) throws(PluginError) -> RouteEntry {
        try RouteEntry(
            try RoutePattern(pattern, after: previous?.pattern), to: action, name: name, summary: summary,
            defaults: defaults, owner: .program, after: previous)
    }

    /// Whether opening a URL would reach an action: exactly when the URL parses and resolves to an action or to a
    /// fallback (the target's `notFound`, or ``onMissingTarget(_:)``), its parameters check, and the guard passes. What
    /// interceptors or the action will say is not foretold.
    public func canOpen(_ url: String, _ parameters: Parameters = [:], origin: CallOrigin = .local) -> Bool {
        (try? calls.checkOpen(url, parameters, isRemote: origin == .remote)) != nil
    }

    /// Builds the URL of a route. What it builds opens the same route with the same parameters.
    ///
    /// - Parameters:
    ///   - route: The name of a route, or a pattern.
    ///   - parameters: Values for the groups of the pattern. What the action declares beyond them stands in the query.
    /// - Throws: `missingParameter`, `unknownParameter` for one that has no place, `mistypedParameter` for a value that
    ///   a URL cannot carry, `conflict` for values with which a route that comes before it would be opened.
    public func url(for route: String, _ parameters: [String: Value] = [:]) throws(PluginError) -> String {
        try calls.url(for: route, parameters)
    }

    /// Asks for the object of a URL, and says so in the call: the action sees it as its parameter `_object`.
    ///
    /// - Throws: as `open`; `invalidResult` when the result is no object.
    public func object(
        for url: String, _ parameters: Parameters = [:], origin: CallOrigin = .local, timeout: Duration? = nil
    ) async throws(PluginError) -> Object {
        try await program.object(for: url, parameters, origin: origin, timeout: timeout)
    }

    /// Sets who decides about calls that come from other programs; nil takes it away.
    public func onRemoteCall(_ guardian: RemoteGuard?) { core.remoteGuard.withLock { $0 = guardian } }
}
