/// The reply of an asynchronous closure, which runs in a task of its own. The task starts on the thread of the call:
///
///     reply.comes(from: .immediate { await reply.give { try await body() } })
///
/// The type of the task declares that it may throw, although it never does: `Task` would wrap a closure that cannot
/// throw in another closure.
@usableFromInline package struct TaskReply: Sendable {
    @usableFromInline nonisolated(unsafe) let host: UnsafePointer<plugin_host>
    @usableFromInline let call: plugin_token

    @usableFromInline package init(host: UnsafePointer<plugin_host>, call: plugin_token) {
        self.host = host
        self.call = call
    }

    /// Runs the closure and replies with its outcome. This function is inlined into the closure of the task, because
    /// each function that awaits another one uses task memory, and each closure uses memory of its own.
    @inlinable @inline(__always) func give<R: ActionResult>(_ body: () async throws -> R) async {
        do { host.resolve(call, try await body()) } catch { host.reject(call, error) }
    }

    /// Runs a closure that returns nothing, and replies with null or its error. Inlined like `give`.
    @inlinable @inline(__always) func giveNull(_ body: () async throws -> Void) async {
        do {
            try await body()
            host.resolve(call)
        } catch {
            host.reject(call, error)
        }
    }

    /// Makes the host cancel the task when nothing waits for the reply any longer. If the task has already replied, the
    /// host releases it immediately.
    @usableFromInline package func comes(from task: Task<Void, any Error>) {
        host.pointee.on_cancel(
            host, call,
            { data, isCancelled in
                let task = Task<Void, any Error>(retained: data!)
                if isCancelled != 0 { task.cancel() }
            }, task.retained())
    }
}

// A task is a single reference to an object of the runtime (and remains one, since `Task` is frozen), so it passes
// through C without a wrapper object.
extension Task<Void, any Error> {
    fileprivate func retained() -> UnsafeMutableRawPointer {
        Unmanaged.passRetained(unsafeBitCast(self, to: AnyObject.self)).toOpaque()
    }

    fileprivate init(retained: UnsafeMutableRawPointer) {
        self = unsafeBitCast(Unmanaged<AnyObject>.fromOpaque(retained).takeRetainedValue(), to: Self.self)
    }
}
