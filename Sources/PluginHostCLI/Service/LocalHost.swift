internal import PluginABI
internal import PluginFile
internal import PluginHost

/// A host in this process.
struct LocalHost: HostService {
    let host: PluginHost
    let trustsEveryone: Bool
    let changes = EventLog()
    let objects = KeptObjects()

    /// Starts a host and logs the problems with its folders.
    ///
    /// - Parameter prepare: Called before modules are loaded.
    init(
        starting configuration: PluginHost.Configuration,
        prepare: (PluginHost) throws(PluginError) -> Void = { _ in }
    ) throws(PluginError) {
        PluginHost.installFatalSignalReport()
        (host, trustsEveryone) = (PluginHost(configuration), configuration.trustsEveryone)
        try prepare(host)
        try host.start()
        for problem in host.unloggedProblems { configuration.log(LogEntry(level: .warning, message: problem.line)) }
    }

    func end() { host.shutdown() }

    func request(_ method: String, _ parameters: [String: Value]) async throws(PluginError) -> Value {
        do throws(RPCError) { return try await answer(method, .map(parameters)) } catch { throw error.reported }
    }

    /// Answers a request. Its parameters may have any form, since a client of the control socket can send anything.
    func answer(_ method: String, _ parameters: Value?) async throws(RPCError) -> Value {
        guard let found = HostMethod.named[method] else {
            let close = didYouMean(method, HostMethod.all.map(\.name))
            throw .unknownMethod("There is no method '\(method.shortened)'.\(close)")
        }
        let parameters = try MethodParameters(parameters, known: found.parameters)
        do {
            return try await found.answer(self, parameters)
        } catch let error as PluginError {
            throw .host(error)
        } catch let error as RPCError {
            throw error
        } catch {
            throw .host(PluginError(.actionFailed, "\(error)"))
        }
    }
}
