import Synchronization

/// One action of a target or of an object type: a name and a typed closure.
///
///     Action("fetchDetail", .required("key", String.self), .optional("page", Int.self, default: 1)) { key, page in
///         Detail(title: "Detail of \(key)", page: page)
///     }
///
/// The inputs are declared once: they name the parameters in the manifest, tell the host what to check and convert, and
/// give the closure its types. An `async` closure makes an asynchronous action. What the closure throws, the caller
/// receives. Closures run on whatever thread calls, also concurrently, unless the target or the module is serial.
public struct Action<Instance>: Sendable {
    @usableFromInline let name: String
    let parameters: [ParameterDeclaration]
    let resultKind: Value.Kind
    let isAsync: Bool
    private(set) var isRemote = false
    private(set) var summary = ""
    /// Runs the closure on a call; what it throws is the reply.
    let run: @Sendable (Invocation) throws -> Void

    @usableFromInline init(
        _ name: String, _ parameters: [ParameterDeclaration?], _ resultKind: Value.Kind, isAsync: Bool,
        _ run: @escaping @Sendable (Invocation) throws -> Void
    ) {
        self.name = name
        self.parameters = parameters.compactMap(\.self)
        self.resultKind = resultKind
        self.isAsync = isAsync
        self.run = run
    }

    /// Lets other programs call the action, by a URL. A name that begins with `native` cannot be declared so.
    public func remote() -> Self { with { $0.isRemote = true } }

    /// One sentence about what the action does, for lists and generated code.
    public func summary(_ text: String) -> Self { with { $0.summary = text } }

    private func with(_ change: (inout Self) -> Void) -> Self {
        var copy = self
        change(&copy)
        return copy
    }
}

/// The result of an asynchronous action that returns nothing.
@usableFromInline struct NoResult: ActionResult, Sendable {
    @inlinable init() {}
    @usableFromInline static var resultKind: Value.Kind { .null }
    @usableFromInline func lend(to body: (plugin_value) -> Void) { body(plugin_value_null()) }
}

extension Invocation {
    @inlinable func resolve(_ result: some ActionResult) { host.resolve(call.pointee.token, result) }
    @inlinable func resolve() { host.resolve(call.pointee.token) }
    func reject(_ error: any Error) { host.reject(call.pointee.token, error) }

    /// Runs an asynchronous closure in a task of its own, which begins on this thread, and replies with its outcome.
    /// When nobody waits for the reply any longer, the task is cancelled.
    @inlinable func start<R: ActionResult>(_ body: @escaping @Sendable () async throws -> R) {
        nonisolated(unsafe) let host = host
        let token = call.pointee.token
        let running = RunningAction()
        let task = Task.immediate {
            do {
                host.resolve(token, try await body())
            } catch {
                host.reject(token, error)
            }
            running.end()
        }
        running.letCancel(task, of: token, host)
    }
}

/// An asynchronous closure that runs. The task is set by who starts it, before the host may cancel it.
@usableFromInline final class RunningAction: @unchecked Sendable {
    private let isOver = Atomic(false)
    private var task: Task<Void, Never>?

    @usableFromInline init() {}

    /// The closure has ended.
    @usableFromInline func end() { isOver.store(true, ordering: .relaxed) }

    /// Lets the host cancel a task that has not ended.
    @usableFromInline func letCancel(
        _ task: Task<Void, Never>, of call: plugin_token, _ host: UnsafePointer<plugin_host>
    ) {
        if isOver.load(ordering: .relaxed) { return }
        self.task = task
        host.pointee.on_cancel(
            host, call,
            { data, isCancelled in
                let running = Unmanaged<RunningAction>.fromOpaque(data!).takeRetainedValue()
                if isCancelled != 0 { running.task?.cancel() }
            }, Unmanaged.passRetained(self).toOpaque())
    }
}
