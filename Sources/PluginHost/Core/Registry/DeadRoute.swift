import PluginABI

/// A route that cannot lead to its action, and why.
struct DeadRoute: Sendable {
    let route: RouteEntry
    let error: PluginError

    var owner: String { route.owner.description }
}
