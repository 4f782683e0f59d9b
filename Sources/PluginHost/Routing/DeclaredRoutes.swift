package import PluginABI
import PluginFile

// From routes as they are declared to routes as the registry has them.

extension ModuleManifest {
    /// The routes of the module.
    ///
    /// - Throws: `invalidPattern`; `invalidManifest` where two match the same URLs.
    func routeEntries() throws(PluginError) -> [RouteEntry] {
        RouteEntry.entries(routes, try routePatterns(), owner: .module(name))
    }

    /// Of each route the groups, or nil for one that has no URL of its own.
    ///
    /// - Throws: `invalidPattern`; `invalidManifest` where two routes match the same URLs.
    package func routeGroups() throws(PluginError) -> [[PatternGroup]?] { try routePatterns().map(\.urlGroups) }

    /// The patterns of the routes, in their order.
    private func routePatterns() throws(PluginError) -> [RoutePattern] {
        try routes.patterns(
            wrong: { $1 },
            twice: { _, route in
                PluginError(
                    .invalidManifest, "In the manifest: two routes match the same URLs as \"\(route.pattern)\".")
            })
    }
}

extension RouteFile {
    /// Reads the routes of a file.
    ///
    /// - Parameter path: Of the file, for messages and as the owner of the routes.
    /// - Throws: `invalidRouteFile`, with the file, what is wrong and where.
    static func entries(_ bytes: [UInt8], path: String) throws(PluginError) -> [RouteEntry] {
        let routes = try parse(bytes, path: path)
        let patterns = try routes.patterns(
            wrong: { error($1.message, at: $0.pattern, path) },
            twice: { other, route in
                PluginError(
                    .invalidRouteFile,
                    "\(path): “\(other.pattern.shortened)” and “\(route.pattern.shortened)” match the same URLs; only one "
                        + "can stand.")
            })
        return RouteEntry.entries(routes, patterns, owner: .file(path))
    }
}

extension [ModuleManifest.Route] {
    /// Reads their patterns, of which no two match the same URLs.
    ///
    /// - Parameters:
    ///   - wrong: Makes the error of a route whose pattern is invalid.
    ///   - twice: Makes the error of a route, the second one, that matches the URLs of another.
    fileprivate func patterns(
        wrong: (Element, PluginError) -> PluginError, twice: (Element, Element) -> PluginError
    ) throws(PluginError) -> [RoutePattern] {
        var patterns: [RoutePattern] = []
        patterns.reserveCapacity(count)
        var ways = 0
        var taken: [RoutePattern.Shape: Element] = [:]
        for route in self {
            do throws(PluginError) {
                let pattern = try RoutePattern(route.pattern, after: patterns.last)
                // A host that follows another one of its name shares what that is made of.
                ways += (pattern.host?.ways ?? 0) + (pattern.path?.ways ?? 0)
                guard ways <= RoutePattern.mostWaysTogether else { throw .tooManyWays(route.pattern) }
                patterns.append(pattern)
            } catch {
                throw wrong(route, error)
            }
            if let other = taken.updateValue(route, forKey: patterns[patterns.count - 1].shape) {
                throw twice(other, route)
            }
        }
        return patterns
    }
}

extension RoutePattern {
    /// How many ways between the states of their expressions the routes of a module or a file may have together: to
    /// register more would hold up all other changes.
    fileprivate static let mostWaysTogether = 2_000_000
}

extension PluginError {
    fileprivate static func tooManyWays(_ pattern: String) -> PluginError {
        PluginError(
            .invalidPattern,
            "With the pattern “\(pattern.shortened)” the expressions of all routes together have more than "
                + "\(RoutePattern.mostWaysTogether) ways between their states. Repeat less in them, or register fewer of "
                + "them.")
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
                    defaults: route.defaults, owner: owner, after: entries.last))
        }
        return entries
    }
}
