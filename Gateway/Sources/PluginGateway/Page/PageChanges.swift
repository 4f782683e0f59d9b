import Dispatch
import Hummingbird
import PluginABI
import PluginHost
import Synchronization

/// The changes of modules that the page asks for. They run one after the other.
final class PageChanges: Sendable {
    /// How many changes may run and wait.
    static let limit = 16

    private let queue = DispatchQueue(label: "PluginGateway.page")
    private let count = Mutex(0)
    let log = PageLog()

    /// Runs a change on a thread of its own.
    func run(_ change: @escaping @Sendable () throws(PluginError) -> Value) async throws(Problem) -> Value {
        let isFull = count.withLock { count in
            if count < Self.limit { count += 1 } else { return true }
            return false
        }
        guard !isFull else {
            throw Problem(.overloaded, "\(Self.limit) changes of modules are waiting, which is the limit.")
        }
        defer { count.withLock { $0 -= 1 } }
        let result: Result<Value, PluginError> = await withCheckedContinuation { continuation in
            queue.async {
                do throws(PluginError) {
                    continuation.resume(returning: .success(try change()))
                } catch {
                    continuation.resume(returning: .failure(error))
                }
            }
        }
        switch result {
        case .success(let value): return value
        case .failure(let error): throw Problem(ofChange: error)
        }
    }
}

/// A change of modules that the page can ask for.
enum PageChange: String, Sendable {
    case remove, rollback, retry

    fileprivate var names: Set<String> {
        switch self {
        case .remove: ["module", "force", "dryRun", "expected"]
        case .rollback: ["module", "version", "force", "dryRun", "expected"]
        case .retry: ["module", "dryRun", "expected"]
        }
    }
}

extension PluginGateway {
    /// `POST /page/remove`, `/page/rollback`, `/page/retry`: changes modules, or returns what the change would do.
    ///
    /// `expected` has the steps that an earlier request has returned. If the change would now do something else,
    /// because modules have changed in the meantime, it is refused.
    ///
    /// - Parameters:
    ///   - client: The client that sent the request.
    ///   - connection: The connection on which the request arrived.
    func change(
        _ kind: PageChange, _ request: ReceivedRequest, _ client: Client, _ connection: Connection?
    ) async throws(Problem) -> Response {
        try checkAllowsChanges()
        let entries = try await entries(of: request, kind.names)
        return try await afterBody { () throws(Problem) in
            try checkReady()
            let (module, version) = (try entries.text("module"), try entries.text(ifGiven: "version"))
            let (force, isDryRun) = (try entries.flag("force"), try entries.flag("dryRun"))
            let expected = try entries.texts(ifGiven: "expected")
            let host = host
            let change = { @Sendable () throws(PluginError) -> Value in
                if kind == .retry { return try host.retryForPage(module, isDryRun: isDryRun, expected: expected) }
                let make = { (isDryRun: Bool) throws(PluginError) in
                    kind == .remove
                        ? try host.remove(module, force: force, dryRun: isDryRun)
                        : try host.rollback(module, to: version, force: force, dryRun: isDryRun)
                }
                let plan = try make(true)
                if isDryRun { return plan.record(isDryRun: true) }
                guard expected == nil || expected == plan.steps else { throw PluginError.otherSteps }
                return try make(false).record(isDryRun: false)
            }
            if isDryRun { return .page(try await pageChanges.run(change)) }
            let entry = PageLog.Entry(
                kind: kind, module: module, version: version, force: force, caller: client.name,
                address: connection?.address)
            do throws(Problem) {
                let value = try await pageChanges.run(change)
                pageChanges.log.add(entry, nil, to: logger)
                return .page(value)
            } catch {
                pageChanges.log.add(entry, error.error, to: logger)
                throw error
            }
        }
    }
}

extension PluginHost {
    /// Restarts an isolated module that serves, and tries others once more.
    fileprivate func retryForPage(
        _ name: String, isDryRun: Bool, expected: [String]?
    ) throws(PluginError) -> Value {
        let modules = modules.filter { $0.name == name || $0.file == name }
        guard !modules.isEmpty else {
            throw PluginError(.unknownModule, "There is no module “\(name.prefix(100))”.")
        }
        let serving = modules.first { $0.name == name && $0.state == .active }
        let step = serving == nil ? "loads \(name) again and starts it" : "restarts \(name) in a new process"
        guard isDryRun || expected == nil || expected == [step] else { throw .otherSteps }
        if !isDryRun { if serving == nil { try retry(name) } else { try restart(name) } }
        return ["module": .string(name), "dryRun": .bool(isDryRun), "steps": [.string(step)]]
    }
}

extension PluginError {
    fileprivate static let otherSteps = PluginError(
        .conflict, "The modules have changed in the meantime. Look at the effects again, then decide.")
}

extension PlannedChange {
    fileprivate var steps: [String] { description.split(separator: "\n").map(String.init) }

    fileprivate func record(isDryRun: Bool) -> Value {
        [
            "module": .string(module), "dryRun": .bool(isDryRun), "steps": .list(steps.map(Value.string)),
            "stopping": .list(stopping.map { .string($0.name) }), "starting": .list(starting.map { .string($0.name) }),
        ]
    }
}
