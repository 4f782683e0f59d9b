import PluginABI

/// A closure of the program to which a route leads instead of an action.
struct RouteClosure: Sendable {
    /// Receives the parameters as a map.
    let callback: Callback
    /// Whether other programs may call it.
    let isRemote: Bool
    /// What the guard must find about other programs that call it.
    let demands: [String]
}
