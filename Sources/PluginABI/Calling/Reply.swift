import Synchronization

/// A handle through which an asynchronous action replies, once, at any later time and from any thread.
///
/// If the handle is released without a reply, the call is rejected with ``PluginError/Code/noReply``. A second reply
/// has no effect except a line in the host's log.
public final class Reply<Result: ActionResult>: Sendable {
    private nonisolated(unsafe) let host: UnsafePointer<plugin_host>
    private let call: plugin_token
    private let isAnswered: Atomic<Bool>

    @usableFromInline init(host: UnsafePointer<plugin_host>, call: plugin_token, isAnswered: Bool) {
        self.host = host
        self.call = call
        self.isAnswered = Atomic(isAnswered)
    }

    /// Replies with a result.
    public func resolve(_ result: Result) {
        isAnswered.store(true, ordering: .relaxed)
        host.resolve(call, result)
    }

    /// Replies with an error.
    public func reject(_ error: any Error) {
        isAnswered.store(true, ordering: .relaxed)
        host.reject(call, error)
    }

    deinit {
        // Rejecting a call that is over does no harm, but would be logged as a mistake of the module.
        if isAnswered.load(ordering: .relaxed) { return }
        host.reject(call, PluginError(.noReply, "The action released its reply handle without replying."))
    }
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
