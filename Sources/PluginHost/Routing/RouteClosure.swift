import PluginABI

/// A closure of the program that is called for the URLs of a route, instead of an action.
struct RouteClosure: Sendable {
    /// Receives the parameters as a map.
    let callback: Callback
    /// Whether other programs may call the closure.
    let isRemote: Bool
    /// The demands on other programs, which the guard checks.
    let demands: [String]
}
