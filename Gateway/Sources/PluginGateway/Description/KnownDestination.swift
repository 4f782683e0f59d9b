import PluginHost

/// What calls need that lead to one place: by the same route, or none, to the same action.
final class KnownDestination: Sendable {
    /// The pattern of the route; `nil` if the URL itself names target and action.
    let route: String?
    /// The fallback that handles the call; `nil` if an action does.
    let fallback: String?
    let module: String?
    /// Target and action.
    let action: String
    /// Target and action for metrics and spans: that of the fallback, if the client has made up the action.
    let countedAction: String
    /// How the routes of the pattern answer the methods; none if there is no route.
    let methods: Catalog.RouteMethods
    /// The declaration of the action; `nil` if it is not known.
    let declaration: Catalog.KnownAction?
    /// What counts the calls until the modules change again.
    let counted: CountedAction
    /// The last change of the modules that ``counted`` considers.
    let change: Int

    init(
        _ found: URLDestination, _ methods: Catalog.RouteMethods, _ declaration: Catalog.KnownAction?,
        _ gateway: PluginGateway
    ) {
        (route, fallback, module, action) = (found.route, found.fallback, found.module, found.action)
        (self.methods, self.declaration) = (methods, declaration)
        var name = action
        if route == nil, fallback != nil, let slash = action.firstIndex(of: "/") {
            name = action[...slash] + "notFound"
        }
        countedAction = name
        (counted, change) = gateway.countedActions.of(module, name, gateway)
    }
}
