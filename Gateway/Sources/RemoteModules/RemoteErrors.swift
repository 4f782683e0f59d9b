public import PluginABI

extension PluginError.Code {
    /// A call has come back to a mount that it has already passed with the same target and action: hosts mount each
    /// other, or their modules call each other, in a cycle.
    public static let circularCall: Self = "circularCall"
    static let unauthorized: Self = "unauthorized"
    static let notRepresentable: Self = "notRepresentable"
    static let hostStarting: Self = "hostStarting"
    static let hostStopping: Self = "hostStopping"
}

extension PluginError {
    static func unrepresentable(_ what: String) -> PluginError { PluginError(.notRepresentable, what) }
}
