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
        // The routes by the hashes of their shapes, and those whose hash a later one of another shape has. As keys of a
        // dictionary, the shapes would be copied with each look-up.
        var (taken, twins) = ([Int: Int](minimumCapacity: count), [Int]())
        func isTaken(_ index: Int, by shape: RoutePattern.Shape) -> Bool { patterns[index].shape == shape }
        var methods: Set<RouteMethod> = []
        for index in indices {
            do throws(PluginError) {
                let pattern = try RoutePattern(self[index].pattern, scheme: scheme, after: patterns.last)
                // The transitions of a host are counted even if it shares its automaton with the host of the previous
                // route.
                transitions += (pattern.host?.transitions ?? 0) + (pattern.path?.transitions ?? 0)
                guard transitions <= RoutePattern.mostTransitions else {
                    throw .tooManyTransitions(self[index].pattern)
                }
                patterns.append(try pattern.naming(self[index].groups).answering(self[index].method))
            } catch {
                throw wrong(self[index], error)
            }
            // A route for every method conflicts with a route of the same shape for any method.
            var shape = patterns[index].shape
            if let other = taken.updateValue(index, forKey: shape.hashValue) { twins.append(other) }
            if let other = twins.first(where: { isTaken($0, by: shape) }) { throw twice(self[other], self[index]) }
            let own = self[index].method
            if let own { methods.insert(own) }
            for method in own == nil ? methods.map(Optional.some) : [nil] {
                shape.method = method
                let candidates = [taken[shape.hashValue]].compactMap(\.self) + twins
                if let other = candidates.first(where: { isTaken($0, by: shape) }) {
                    throw twice(self[other], self[index])
                }
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
        for index in routes.indices {
            // Each part is read in place, because a copy of the route would retain all of them.
            entries.append(
                RouteEntry(
                    patterns[index], target: routes[index].target, action: routes[index].action,
                    name: routes[index].name, summary: routes[index].summary, defaults: routes[index].defaults,
                    transition: routes[index].transition, owner: owner, after: entries.last))
        }
        return entries
    }
}
