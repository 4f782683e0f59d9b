internal import PluginABI

/// A host that commands use, in this process or at the other end of a control socket.
protocol HostService: Sendable {
    /// Calls a method (``HostMethod``) and returns its result.
    func request(_ method: String, _ parameters: [String: Value]) async throws(PluginError) -> Value

    /// Ends the use of the host. Called when the command has its result.
    func end()
}
