package import PluginABI
import PluginFile

// The conversion of declared routes to entries of the registry.

extension ModuleManifest {
    /// Returns the entries of the module's routes.
    ///
    /// - Parameter scheme: The scheme of patterns that are written without one; `nil` if they are refused.
    /// - Throws: `invalidPattern`; `invalidManifest` if two routes match the same URLs.
    func routeEntries(scheme: String?) throws(PluginError) -> [RouteEntry] {
        RouteEntry.entries(routes, try routes.patternsOfModule(scheme), owner: .module(name))
    }

    /// Returns the groups of each route; `nil` for a route from whose pattern no URL can be built.
    ///
    /// - Throws: `invalidPattern`; `invalidManifest` if two routes match the same URLs.
    package func routeGroups() throws(PluginError) -> [[PatternGroup]?] {
        try routes.patternsOfModule(RoutePattern.unknownScheme).map(\.urlGroups)
    }
}

extension ModuleOutline {
    /// Returns the routes in the form of the registry.
    ///
    /// - Parameter scheme: The scheme of patterns that are written without one; `nil` if they are refused.
    /// - Throws: `invalidPattern`; `invalidManifest` if two routes match the same URLs.
    func routeEntries(scheme: String?) throws(PluginError) -> [RouteEntry] {
        if routes.isEmpty { return [] }
        return RouteEntry.entries(routes, try routes.patternsOfModule(scheme), owner: .module(name))
    }
}

extension [ModuleManifest.Route] {
    /// Returns the patterns of the routes of a module, in the same order.
    fileprivate func patternsOfModule(_ scheme: String?) throws(PluginError) -> [RoutePattern] {
        try patterns(
            scheme,
            wrong: { $1 },
            twice: { _, route in
                PluginError(
                    .invalidManifest, "In the manifest: more than one route matches the URLs of \"\(route.pattern)\".")
            })
    }
}

extension RouteFile {
    /// Reads the routes of a file.
    ///
    /// - Parameters:
    ///   - path: The path of the file, for messages and as the owner of the routes.
    ///   - scheme: The scheme of patterns that are written without one; `nil` if they are refused.
    /// - Throws: `invalidRouteFile`, with the path, the error and its position.
    static func entries(_ bytes: [UInt8], path: String, scheme: String?) throws(PluginError) -> [RouteEntry] {
        let routes = try parse(bytes, path: path)
        let patterns = try routes.patterns(
            scheme,
            wrong: { error($1.message, at: $0.pattern, path) },
            twice: { other, route in
                PluginError(
                    .invalidRouteFile,
                    "\(path): “\(other.pattern.shortened)” and “\(route.pattern.shortened)” match the same URLs. "
                        + "Remove one of them.")
            })
        return RouteEntry.entries(routes, patterns, owner: .file(path))
    }
}

extension [ModuleManifest.Route] {
    /// Reads the patterns of the routes, and checks that no two match the same URLs.
    ///
    /// - Parameters:
    ///   - scheme: The scheme of patterns that are written without one; `nil` if they are refused.
    ///   - wrong: Returns the error of a route whose pattern is invalid.
    ///   - twice: Returns the error of two routes that match the same URLs.
    fileprivate func patterns(
        _ scheme: String?,
        wrong: (Element, PluginError) -> PluginError, twice: (Element, Element) -> PluginError
    ) throws(PluginError) -> [RoutePattern] {
        var patterns: [RoutePattern] = []
        patterns.reserveCapacity(count)
        var transitions = 0
        var taken: [RoutePattern.Shape: Int] = [:]
        taken.reserveCapacity(count)
        var methods: Set<RouteMethod> = []
        for (index, route) in enumerated() {
            do throws(PluginError) {
                let pattern = try RoutePattern(route.pattern, scheme: scheme, after: patterns.last)
                // The transitions of a host are counted even if it shares its automaton with the host of the previous
                // route.
                transitions += (pattern.host?.transitions ?? 0) + (pattern.path?.transitions ?? 0)
                guard transitions <= RoutePattern.mostTransitions else { throw .tooManyTransitions(route.pattern) }
                patterns.append(try pattern.naming(route.groups).answering(route.method))
            } catch {
                throw wrong(route, error)
            }
            // A route for every method takes the shape of its pattern for all of them.
            var shape = patterns[index].shape
            if let other = taken.updateValue(index, forKey: shape) { throw twice(self[other], route) }
            if let method = route.method { methods.insert(method) }
            for method in route.method == nil ? methods.map(Optional.some) : [nil] {
                shape.method = method
                if let other = taken[shape] { throw twice(self[other], route) }
            }
        }
        return patterns
    }
}

extension RoutePattern {
    /// The maximum number of transitions between states in the expressions of all routes of a module or file.
    /// Registering more would delay all other changes.
    fileprivate static let mostTransitions = 2_000_000
}

extension PluginError {
    fileprivate static func tooManyTransitions(_ pattern: String) -> PluginError {
        PluginError(
            .invalidPattern,
            "With the pattern “\(pattern.shortened)”, the expressions of all routes together have more than "
                + "\(RoutePattern.mostTransitions) transitions between their states. Use fewer repetitions, or "
                + "register fewer routes.")
    }
}

extension RouteEntry {
    fileprivate static func entries(
        _ routes: [ModuleManifest.Route], _ patterns: [RoutePattern], owner: Owner
    ) -> [RouteEntry] {
        var entries: [RouteEntry] = []
        entries.reserveCapacity(routes.count)
        for (route, pattern) in zip(routes, patterns) {
            entries.append(
                RouteEntry(
                    pattern, target: route.target, action: route.action, name: route.name, summary: route.summary,
                    defaults: route.defaults, transition: route.transition, owner: owner, after: entries.last))
        }
        return entries
    }
}
