import PluginABI
import PluginFile

extension Calls {
    /// Builds the URL of a route.
    func url(for route: String, _ parameters: [String: Value]) throws(PluginError) -> String {
        let table = registry.table
        let routes = table.routes.table
        let named = routes.named(route)
        let isName = !route.utf8.contains(UInt8(ascii: "/"))
        let written: RoutePattern
        do throws(PluginError) {
            written = if let named { named.pattern } else { try RoutePattern(route, scheme: settings.firstScheme) }
        } catch {
            throw isName ? .unknownRoute(route, routes) : error
        }
        let known = named ?? routes.entry(like: written).flatMap { $0.pattern.text == route ? $0 : nil }
        if known == nil, isName { throw .unknownRoute(route, routes) }
        let pattern = known?.pattern ?? written
        let endpoint = known.flatMap { tableStarting(target: $0.target).targets[$0.target]?.actions[$0.action] }
        var declared = Dictionary(endpoint?.parameters.map { ($0.name, $0.kind) } ?? []) { first, _ in first }
        if endpoint?.hasRest == true || known?.closure != nil {
            for name in parameters.keys where declared[name] == nil && ReservedName(rawValue: name) == nil {
                declared[name] = .any
            }
        }
        let url = try pattern.url(with: parameters, declared: declared, longest: settings.longestURL)
        if let known { try table.routes.table.checkOpens(known, url, longest: settings.longestURL) }
        return url
    }
}

extension PluginError {
    fileprivate static func unknownRoute(_ name: String, _ routes: RouteTable) -> PluginError {
        PluginError(
            .invalidURL,
            "There is no route with the name or pattern “\(name.shortened)”.\(didYouMean(name, routes.routeNames))")
    }
}
