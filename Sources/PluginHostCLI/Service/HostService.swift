internal import PluginABI

/// A host that commands ask, be it in this process or at the other end of a control socket.
protocol HostService: Sendable {
    /// What one of its methods (``HostMethod``) gives.
    func request(_ method: String, _ parameters: [String: Value]) async throws(PluginError) -> Value

    /// Is called when the command has its answer.
    func end()
}
