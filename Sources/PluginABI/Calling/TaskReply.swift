/// The reply of an asynchronous closure, which runs in a task of its own. The task begins on the thread of the call:
///
///     reply.comes(from: .immediate { await reply.give { try await body() } })
///
/// Its type says that it may throw, though it never does: of a closure that cannot, `Task` keeps another one that calls
/// it.
@usableFromInline package struct TaskReply: Sendable {
    @usableFromInline nonisolated(unsafe) let host: UnsafePointer<plugin_host>
    @usableFromInline let call: plugin_token

    @usableFromInline package init(host: UnsafePointer<plugin_host>, call: plugin_token) {
        self.host = host
        self.call = call
    }

    /// Runs the closure and replies with its outcome. In one function with the closure of the task: each function that
    /// awaits another one costs memory of the task's, and closures memory of their own.
    @inlinable @inline(__always) func give<R: ActionResult>(_ body: () async throws -> R) async {
        do { host.resolve(call, try await body()) } catch { host.reject(call, error) }
    }

    /// The same for a closure that returns nothing: the result is null.
    @inlinable @inline(__always) func giveNull(_ body: () async throws -> Void) async {
        do {
            try await body()
            host.resolve(call)
        } catch {
            host.reject(call, error)
        }
    }

    /// Has the host cancel the task when nobody waits for the reply any longer. It lets go of one that has replied at
    /// once.
    @usableFromInline package func comes(from task: Task<Void, any Error>) {
        host.pointee.on_cancel(
            host, call,
            { data, isCancelled in
                let task = Task<Void, any Error>(retained: data!)
                if isCancelled != 0 { task.cancel() }
            }, task.retained())
    }
}

// A task is one reference to an object of the runtime's (`Task` is frozen, so that stays): it goes through C without an
// object of ours around it.
extension Task<Void, any Error> {
    fileprivate func retained() -> UnsafeMutableRawPointer {
        Unmanaged.passRetained(unsafeBitCast(self, to: AnyObject.self)).toOpaque()
    }

    fileprivate init(retained: UnsafeMutableRawPointer) {
        self = unsafeBitCast(Unmanaged<AnyObject>.fromOpaque(retained).takeRetainedValue(), to: Self.self)
    }
}
