internal import PluginABI
internal import PluginHost

/// A host in this process.
struct LocalHost: HostService {
    let host: PluginHost
    let trustsEveryone: Bool
    var changes = EventLog()
    private let objects = KeptObjects()

    init(host: PluginHost, trustsEveryone: Bool) { (self.host, self.trustsEveryone) = (host, trustsEveryone) }

    func list() -> Value {
        let interceptors = host.interceptors
        return .list(host.modules.map { $0.record(with: interceptors) })
    }

    func generations() -> Value {
        let retired = host.retiredTotal
        return [
            "generations": .list(host.generations.map(\.record)),
            "retired": ["count": .int(retired.count), "mappedBytes": .int(retired.mappedBytes)],
        ]
    }

    func routes() -> Value { .list(host.routes.map(\.record)) }

    func services() -> Value { .list(host.services.map(\.record)) }

    func statistics() -> Value { .list(host.statistics.map(\.record)) }

    func call(
        _ target: String, _ action: String, _ parameters: [String: Value], timeout: Duration?
    ) async throws(PluginError) -> Value {
        objects.keep(try await host.call(target, action, Parameters(parameters), timeout: timeout))
    }

    func callService(
        _ name: String, from version: String?, _ action: String, _ parameters: [String: Value], timeout: Duration?
    ) async throws(PluginError) -> Value {
        objects.keep(
            try await host.service(name, from: version).call(action, Parameters(parameters), timeout: timeout))
    }

    func callObject(
        _ object: Int, _ action: String, _ parameters: [String: Value], timeout: Duration?
    ) async throws(PluginError) -> Value {
        let object = try objects.object(object)
        return objects.keep(try await object.call(action, Parameters(parameters), timeout: timeout))
    }

    func release(_ object: Int) throws(PluginError) { try objects.release(object) }

    func open(
        _ url: String, _ parameters: [String: Value], isLocal: Bool, timeout: Duration?
    ) async throws(PluginError) -> Value {
        objects.keep(
            try await host.open(url, Parameters(parameters), origin: isLocal ? .local : .remote, timeout: timeout))
    }

    func post(
        _ event: String, _ parameters: [String: Value], sticky: Bool, timeout: Duration?
    ) async throws(PluginError) -> Value {
        try await host.post(event, Parameters(parameters), sticky: sticky, timeout: timeout).value
    }

    func remove(_ name: String, force: Bool, dryRun: Bool) throws(PluginError) -> Value {
        try host.remove(name, force: force, dryRun: dryRun).record(isDryRun: dryRun)
    }

    func rollback(_ name: String, to version: String?, force: Bool, dryRun: Bool) throws(PluginError) -> Value {
        try host.rollback(name, to: version, force: force, dryRun: dryRun).record(isDryRun: dryRun)
    }

    func versions(_ name: String) -> Value {
        // What is left out stands behind the others, with its error alone.
        .list(
            host.keptVersions(of: name).map(\.record)
                + host.keptVersionsLeftOut(of: name).map { ["error": $0.record] })
    }

    func events(after number: Int?, timeout: Duration?) async -> Value {
        await changes.events(after: number, waitingAtMost: timeout)
    }

    func inspect(_ file: String, timeout: Duration?) async throws(PluginError) -> Value {
        try await Inspection(file: file, trustsEveryone: trustsEveryone, deadline: timeout).run()
    }
}
