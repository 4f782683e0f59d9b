package import PluginABI

extension ModuleManifest {
    /// A pattern of URLs that leads to an action of the module.
    package struct Route: Sendable, Equatable {
        /// As it is written; not checked.
        package var pattern: String
        package var target: String
        package var action: String
        package var name: String?
        package var summary = ""
        package var defaults: [String: Value] = [:]
    }
}

extension ManifestNode {
    func routes(to targets: [ModuleManifest.Target]) throws(PluginError) -> [ModuleManifest.Route] {
        let values = try optional("routes", \.list, "a list") ?? []
        guard !values.isEmpty else { return [] }
        let actions = Set(targets.lazy.flatMap { target in target.actions.map { "\(target.name)/\($0.name)" } })
        var routes: [ModuleManifest.Route] = []
        routes.reserveCapacity(values.count)
        for value in values {
            let place = "route \((value["pattern"]?.string ?? "").shortened)"
            let route = try ManifestNode(value: value, place: place, skipsUnknown: skipsUnknown).route()
            guard actions.contains("\(route.target)/\(route.action)") else {
                throw error(
                    "the route \"\(route.pattern)\" leads to \(route.target)/\(route.action), which the module does "
                        + "not have")
            }
            routes.append(route)
        }
        return routes
    }

    private func route() throws(PluginError) -> ModuleManifest.Route {
        try checkKeys(["pattern", "action", "name", "summary", "defaults"])
        let pattern = try required("pattern", \.string, "a string")
        guard let names = try required("action", \.string, "a string").targetAndAction else {
            throw error("\"action\" must be written target/action")
        }
        return ModuleManifest.Route(
            pattern: pattern, target: names.target, action: names.action,
            name: try optional("name", \.string, "a string"), summary: try summary(),
            defaults: try optional("defaults", \.map, "an object") ?? [:])
    }
}
