internal import PluginABI
internal import PluginFile
internal import PluginHost
internal import Synchronization

/// A host in this process.
struct LocalHost: HostService {
    let host: PluginHost
    let trustsEveryone: Bool
    let changes = EventLog()
    let objects = KeptObjects()

    private let progress = Progress()

    private final class Progress: Sendable {
        let isStarted = Atomic(false)
    }

    /// Makes a host that is not started yet. It answers requests already.
    init(_ configuration: PluginHost.Configuration) {
        PluginHost.installFatalSignalReport()
        (host, trustsEveryone) = (PluginHost(configuration), configuration.trustsEveryone)
    }

    /// Starts a host and logs the problems with its folders.
    init(starting configuration: PluginHost.Configuration) throws(PluginError) {
        self.init(configuration)
        try start()
    }

    /// Starts the host and logs the problems with its folders.
    func start() throws(PluginError) {
        try host.start()
        progress.isStarted.store(true, ordering: .releasing)
        for problem in host.unloggedProblems {
            host.configuration.log(LogEntry(level: .warning, message: problem.line))
        }
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
            throw .host(explain(error))
        } catch let error as RPCError {
            throw error
        } catch {
            throw .host(PluginError(.actionFailed, "\(error)"))
        }
    }

    /// Adds to an error that something does not exist that its module may not be loaded yet.
    private func explain(_ error: PluginError) -> PluginError {
        guard !progress.isStarted.load(ordering: .acquiring), Self.absences.contains(error.code) else { return error }
        var error = error
        error.message += " The host is still starting: see 'list'."
        return error
    }

    private static let absences: Set<PluginError.Code> = [
        .unknownTarget, .unknownService, .noRoute, .unknownModule, .moduleUnavailable,
    ]
}
