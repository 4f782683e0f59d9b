import Synchronization

/// A handle through which an asynchronous action replies, once, at any later time and from any thread.
///
/// If the handle is released without a reply, the call is rejected with ``PluginError/Code/noReply``. A second reply
/// has no effect except a line in the host's log.
public final class Reply<Result: ActionResult>: Sendable, ReplyHandle {
    private nonisolated(unsafe) let host: UnsafePointer<plugin_host>
    private let call: plugin_token
    private let isDue = Atomic(false)

    /// Makes a handle, from which no reply is due until it is handed out.
    @usableFromInline init(host: UnsafePointer<plugin_host>, call: plugin_token) {
        self.host = host
        self.call = call
    }

    @usableFromInline func handOut() { isDue.store(true, ordering: .relaxed) }

    /// Replies with a result.
    public func resolve(_ result: Result) {
        isDue.store(false, ordering: .relaxed)
        host.resolve(call, result)
    }

    /// Replies with an error.
    public func reject(_ error: any Error) {
        isDue.store(false, ordering: .relaxed)
        host.reject(call, error)
    }

    deinit {
        // Rejecting a call that is over does no harm, but would be logged as a mistake of the module.
        if !isDue.load(ordering: .relaxed) { return }
        host.reject(call, PluginError(.noReply, "The action released its reply handle without replying."))
    }
}

/// A reply handle of any type of result.
@usableFromInline protocol ReplyHandle: AnyObject {
    /// Makes the reply due. To be called after all inputs of the action have been read: if one of them cannot be read,
    /// the call is rejected for that reason, not because the handle is released.
    func handOut()
}

extension UnsafePointer<plugin_host> {
    @inlinable func resolve(_ call: plugin_token, _ result: some ActionResult) {
        do throws(PluginError) {
            try result.lend { raw in
                var raw = raw
                _ = pointee.resolve(self, call, &raw)
            }
        } catch {
            rejectResult(call, error)
        }
    }

    @usableFromInline func rejectResult(_ call: plugin_token, _ error: PluginError) {
        let message = error.about(.result, of: "").message
        reject(call, PluginError(.invalidResult, "The result cannot be passed on. \(message)"))
    }

    @inlinable func resolve(_ call: plugin_token) { _ = pointee.resolve(self, call, nil) }

    @usableFromInline func reject(_ call: plugin_token, _ error: any Error) {
        let error: PluginError =
            switch error {
            case let error as PluginError: error
            case is CancellationError: PluginError(.cancelled, "The action was cancelled.")
            default: PluginError(.actionFailed, String(describing: error))
            }
        error.lend { _ = pointee.reject(self, call, $0) }
    }
}
