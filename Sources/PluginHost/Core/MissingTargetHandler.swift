import PluginABI

/// The program's fallback for targets and actions that no module offers.
struct MissingTargetHandler: Sendable {
    /// The code. Its arguments: the target, the action, the parameters by name, and whether the call is remote.
    let callback: Callback
    /// Whether only callers that can wait can use the handler.
    let isAsync: Bool
}
