internal import PluginABI

/// What the commands ask of a host, be it in this process or at the other end of a control socket.
protocol HostService: Sendable {
    /// The records of all modules, as a list.
    func list() async throws(PluginError) -> Value

    /// The records of all routes, as a list.
    func routes() async throws(PluginError) -> Value

    /// The records of all services, as a list.
    func services() async throws(PluginError) -> Value

    func call(
        _ target: String, _ action: String, _ parameters: [String: Value], timeout: Duration?
    ) async throws(PluginError) -> Value

    func open(
        _ url: String, _ parameters: [String: Value], isLocal: Bool, timeout: Duration?
    ) async throws(PluginError) -> Value

    /// What has become of an event: how many got it, and which failed.
    func post(
        _ event: String, _ parameters: [String: Value], sticky: Bool, timeout: Duration?
    ) async throws(PluginError) -> Value

    func inspect(_ file: String, timeout: Duration?) async throws(PluginError) -> Value
}
