import PluginABI

extension Calls {
    /// Builds the URL of a route.
    func url(for route: String, _ parameters: [String: Value]) throws(PluginError) -> String {
        let table = registry.table
        let named = table.routes.table.named(route)
        let written = if let named { named.pattern } else { try RoutePattern(route) }
        let known = named ?? table.routes.table.entry(like: written).flatMap { $0.pattern.text == route ? $0 : nil }
        let pattern = known?.pattern ?? written
        let endpoint = known.flatMap { table.targets[$0.target]?.actions[$0.action] }
        var declared = Set(endpoint?.parameters.map(\.name) ?? [])
        if endpoint?.hasRest == true {
            declared.formUnion(parameters.keys.filter { ReservedName(rawValue: $0) == nil })
        }
        let url = try pattern.url(with: parameters, declared: declared, longest: settings.longestURL)
        if let known { try table.routes.table.checkOpens(known, url, longest: settings.longestURL) }
        return url
    }
}
