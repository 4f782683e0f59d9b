internal import PluginABI

/// What the commands ask of a host, be it in this process or at the other end of a control socket.
protocol HostService: Sendable {
    /// The records of all modules, as a list.
    func list() async throws(PluginError) -> Value

    /// Every generation, those that drain and were retired included, and what the retired ones take in all.
    func generations() async throws(PluginError) -> Value

    /// The records of all routes, as a list.
    func routes() async throws(PluginError) -> Value

    /// The records of all services, as a list.
    func services() async throws(PluginError) -> Value

    /// The records of what was called so far, as a list.
    func statistics() async throws(PluginError) -> Value

    func call(
        _ target: String, _ action: String, _ parameters: [String: Value], timeout: Duration?
    ) async throws(PluginError) -> Value

    /// Calls an action of the service of a name and at least a version.
    func callService(
        _ name: String, from version: String?, _ action: String, _ parameters: [String: Value], timeout: Duration?
    ) async throws(PluginError) -> Value

    /// Calls an action of an object that a call of this host has returned.
    func callObject(
        _ object: Int, _ action: String, _ parameters: [String: Value], timeout: Duration?
    ) async throws(PluginError) -> Value

    /// Lets go of an object that a call of this host has returned.
    func release(_ object: Int) async throws(PluginError)

    func open(
        _ url: String, _ parameters: [String: Value], isLocal: Bool, timeout: Duration?
    ) async throws(PluginError) -> Value

    /// What has become of an event: how many got it, and which failed.
    func post(
        _ event: String, _ parameters: [String: Value], sticky: Bool, timeout: Duration?
    ) async throws(PluginError) -> Value

    /// What was done, or would be.
    func remove(_ name: String, force: Bool, dryRun: Bool) async throws(PluginError) -> Value

    /// What was done, or would be.
    func rollback(_ name: String, to version: String?, force: Bool, dryRun: Bool) async throws(PluginError) -> Value

    /// The records of the versions of a module that are kept, as a list.
    func versions(_ name: String) async throws(PluginError) -> Value

    /// The changes after the one with this number, or all that are remembered; waits for one if there is a timeout.
    func events(after number: Int?, timeout: Duration?) async throws(PluginError) -> Value

    func inspect(_ file: String, timeout: Duration?) async throws(PluginError) -> Value
}
