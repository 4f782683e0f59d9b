internal import PluginABI
internal import PluginFile
internal import PluginHost

/// A host in this process.
struct LocalHost: HostService {
    let host: PluginHost
    let trustsEveryone: Bool
    let changes = EventLog()
    let objects = KeptObjects()

    private let hasStarted = StartSignal()

    /// Makes a host that is not started yet. It already answers requests; those that need modules wait for the start.
    init(_ configuration: PluginHost.Configuration) {
        PluginHost.installFatalSignalReport()
        (host, trustsEveryone) = (PluginHost(configuration), configuration.trustsEveryone)
    }

    /// Starts a host and logs the problems with its folders.
    init(starting configuration: PluginHost.Configuration) throws(PluginError) {
        self.init(configuration)
        try start()
    }

    /// Adds the changes of the host to ``changes`` from now on.
    func noteChanges() -> Task<Void, Never> {
        let stream = host.changes
        return Task(executorPreference: BlockingExecutor.shared) { [changes] in
            for await change in stream { changes.add(change) }
        }
    }

    /// Starts the host and logs the problems with its folders.
    func start() throws(PluginError) {
        defer { hasStarted.give() }
        try host.start()
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
            if found.needsModules {
                // A look-up has no timeout of its own.
                let limit = try parameters.timeout
                try await waitForStart(
                    atMost: found.runsModules ? limit : limit ?? host.configuration.asyncTimeout)
            }
            return try await found.answer(self, parameters)
        } catch let error as PluginError {
            throw .host(error)
        } catch let error as RPCError {
            throw error
        } catch {
            throw .host(PluginError(.actionFailed, "\(error)"))
        }
    }

    /// Waits until the host has started.
    ///
    /// - Throws: `deadlineExceeded`.
    private func waitForStart(atMost timeout: Duration?) async throws {
        if await hasStarted.wait(atMost: timeout) { return }
        try Task.checkCancellation()
        throw PluginError(
            .deadlineExceeded, "The host is still starting; 'list' shows which modules it is waiting for.")
    }
}
