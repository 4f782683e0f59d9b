package import PluginABI

/// A file in a plugins folder that maps URLs to actions, `*.routes.json` or `*.routes.plist`:
///
///     {"app://shop/:key": "A/fetchDetail", "app://": {"action": "A/home", "summary": "Everything else"}}
package enum RouteFile {
    static let routeLimit = 100_000

    static func isNamed(_ name: String) -> Bool { DeclarationFile.isNamed(name, "routes") }

    /// Reads the routes of a file, sorted by pattern. Does not check whether the patterns are valid.
    ///
    /// - Parameter path: The path of the file, for messages.
    /// - Throws: `invalidRouteFile`, with the file, what is wrong and where.
    package static func parse(_ bytes: [UInt8], path: String) throws(PluginError) -> [ModuleManifest.Route] {
        let file = DeclarationFile(path: path, code: .invalidRouteFile)
        let entries = try file.entries(
            file.content(bytes), "patterns to actions, such as {\"app://shop/:key\": \"A/detail\"}")
        try file.checkCount(entries.count, "routes", limit: routeLimit)
        var routes: [ModuleManifest.Route] = []
        routes.reserveCapacity(entries.count)
        var names: [String: String] = [:]
        for (pattern, value) in entries {
            let route: ModuleManifest.Route
            do throws(PluginError) { route = try self.route(pattern, value) } catch {
                throw self.error(error.message, at: pattern, path)
            }
            if let name = route.name, let other = names.updateValue(pattern, forKey: name) {
                throw file.error(
                    ": “\(other.shortened)” and “\(pattern.shortened)” are both named “\(name.shortened)”.")
            }
            routes.append(route)
        }
        return routes
    }

    /// Makes the error for one route.
    package static func error(_ message: String, at pattern: String, _ path: String) -> PluginError {
        PluginError(.invalidRouteFile, "\(path), route “\(pattern.shortened)”: \(message)")
    }

    private static func route(_ pattern: String, _ value: Value) throws(PluginError) -> ModuleManifest.Route {
        if let action = value.string {
            let names = try action.actionOfRoute()
            return ModuleManifest.Route(pattern: pattern, target: names.target, action: names.action)
        }
        func error(_ message: String) -> PluginError { PluginError(.invalidRouteFile, message) }
        guard case .map(let fields) = value else {
            throw error("It must be \"target/action\", or an object with the key \"action\".")
        }
        let known = ["action", "method", "name", "summary", "defaults", "transition", "groups"]
        if let key = fields.keys.sorted().first(where: { !known.contains($0) }) {
            throw error(
                "The key \"\(key.shortened)\" is not known.\(didYouMean(key, known)) The known keys are: "
                    + "\(known.joined(separator: ", ")).")
        }
        func field<T>(_ key: String, _ read: (Value) -> T?, _ kind: String) throws(PluginError) -> T? {
            guard let value = fields[key] else { return nil }
            guard let result = read(value) else { throw error("\"\(key)\" must be \(kind).") }
            return result
        }
        guard let names = try field("action", \.string, "a string, written target/action")?.actionOfRoute() else {
            throw error("The key \"action\" is missing.")
        }
        let transition = try field("transition", \.string, "a string").map { word throws(PluginError) in
            guard let transition = Transition(rawValue: word) else {
                let words = Transition.allCases.map(\.rawValue)
                throw error(
                    "The transition \"\(word.shortened)\" is not known.\(didYouMean(word, words)) The known ones are: "
                        + "\(words.joined(separator: ", ")).")
            }
            return transition
        }
        return ModuleManifest.Route(
            pattern: pattern, target: names.target, action: names.action,
            method: try field(
                "method", { $0.string.flatMap(RouteMethod.init) },
                "one of " + RouteMethod.allCases.map { "\"\($0.rawValue)\"" }.joined(separator: ", ")),
            name: try field("name", \.string, "a string"), summary: try field("summary", \.string, "a string") ?? "",
            defaults: try field("defaults", \.map, "an object") ?? [:], transition: transition ?? .none,
            groups: try field("groups", \.routeGroups, "an object of group numbers and parameters") ?? [:])
    }
}
