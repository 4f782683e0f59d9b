package import PluginABI

extension ModuleManifest {
    /// A route: a pattern of URLs that leads to an action of the module.
    package struct Route: Sendable, Equatable {
        /// The pattern as it is written. It has not been checked.
        package var pattern: String
        package var target: String
        package var action: String
        /// The only method that the route answers; `nil` for every method.
        package var method: RouteMethod?
        package var name: String?
        package var summary = ""
        package var defaults: [String: Value] = [:]
        /// How the page that the action makes is shown when the URL comes from outside.
        package var transition = Transition.none
        /// The parameters to which groups without a name are mapped, by the numbers of the groups.
        package var groups: [Int: String] = [:]

        /// The pattern, with the method in front if there is one.
        package var title: String { (method.map { "\($0.rawValue) " } ?? "") + pattern }
    }
}

extension ManifestNode {
    func routes(to targets: [ModuleManifest.Target]) throws(PluginError) -> [ModuleManifest.Route] {
        lazy var actions = Set(targets.lazy.flatMap { target in target.actions.map { "\(target.name)/\($0.name)" } })
        let pattern = { (value: Value) in value["pattern"]?.string ?? "" }
        return try elements("routes", "route", name: pattern) { node, _ throws(PluginError) in
            let (route, action) = try node.route()
            guard actions.contains(action) else {
                throw error(
                    "the route \"\(route.pattern)\" leads to \(action), which the module does not have",
                    didYouMean(action, actions))
            }
            return route
        }
    }

    /// Reads a route. Returns it with its action as it is written.
    private func route() throws(PluginError) -> (ModuleManifest.Route, action: String) {
        try checkKeys(["pattern", "action", "method", "name", "summary", "defaults", "transition", "groups"])
        let pattern = try string("pattern")
        let action = try string("action")
        guard let names = action.targetAndAction else {
            throw error("\"action\" must be written target/action")
        }
        let route = ModuleManifest.Route(
            pattern: pattern, target: names.target, action: names.action,
            method: try optional(
                "method", { $0.string.flatMap(RouteMethod.init) },
                "one of " + RouteMethod.allCases.map { "\"\($0.rawValue)\"" }.joined(separator: ", ")),
            name: try optional("name", \.string, "a string"), summary: try summary(),
            defaults: try optional("defaults", \.map, "an object") ?? [:],
            transition: try choice("transition", default: Transition.none),
            groups: try optional("groups", \.routeGroups, "an object of group numbers and parameters") ?? [:])
        return (route, action)
    }
}

extension Value {
    /// A route's map from groups without a name to parameters, such as `{"0": "path"}`; `nil` if this is not such a
    /// map.
    var routeGroups: [Int: String]? {
        guard let map else { return nil }
        var groups: [Int: String] = [:]
        for (key, value) in map {
            guard let number = Int(key), number >= 0, String(number) == key, let name = value.string else { return nil }
            groups[number] = name
        }
        return groups
    }
}
