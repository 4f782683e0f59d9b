internal import PluginABI
internal import PluginHost

/// A host in this process.
struct LocalHost: HostService {
    let host: PluginHost
    let trustsEveryone: Bool

    func list() -> Value { .list(host.modules.map(\.record)) }

    func routes() -> Value { .list(host.routes.map(\.record)) }

    func services() -> Value { .list(host.services.map(\.record)) }

    func call(
        _ target: String, _ action: String, _ parameters: [String: Value], timeout: Duration?
    ) async throws(PluginError) -> Value {
        try await withTaskExecutorPreference(BlockingExecutor.shared) { () async throws(PluginError) in
            try await host.call(target, action, Parameters(parameters), timeout: timeout)
        }
    }

    func open(
        _ url: String, _ parameters: [String: Value], isLocal: Bool, timeout: Duration?
    ) async throws(PluginError) -> Value {
        try await withTaskExecutorPreference(BlockingExecutor.shared) { () async throws(PluginError) in
            try await host.open(url, Parameters(parameters), origin: isLocal ? .local : .remote, timeout: timeout)
        }
    }

    func post(
        _ event: String, _ parameters: [String: Value], sticky: Bool, timeout: Duration?
    ) async throws(PluginError) -> Value {
        try await withTaskExecutorPreference(BlockingExecutor.shared) { () async throws(PluginError) in
            try await host.post(event, Parameters(parameters), sticky: sticky, timeout: timeout).value
        }
    }

    func inspect(_ file: String, timeout: Duration?) async throws(PluginError) -> Value {
        try await Inspection(file: file, trustsEveryone: trustsEveryone, deadline: timeout).run()
    }
}
