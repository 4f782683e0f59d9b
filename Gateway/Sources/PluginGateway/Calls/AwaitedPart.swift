import PluginABI
import Synchronization

/// A part of a call whose client waits. Its result arrives once: the first one counts.
final class AwaitedPart: EarlyEnding {
    private struct State {
        var cancel: (@Sendable () -> Void)?
        var waiter: UnsafeContinuation<Result<Value, PluginError>, Never>?
        var result: Result<Value, PluginError>?
    }

    private let call: GatewayCall
    /// The pace of the calls, if they can share threads.
    private let pace: CallPace?
    private let state = Mutex(State())

    init(_ call: GatewayCall, _ pace: CallPace? = nil) { (self.call, self.pace) = (call, pace) }

    /// Cancels what does the part, if it is ended early; `nil` until that has begun.
    var cancel: (@Sendable () -> Void)? {
        get { state.withLock(\.cancel) }
        set {
            let isOver = state.withLock { state in
                state.cancel = newValue
                return state.result != nil
            }
            if isOver { newValue?() }
        }
    }

    func set(_ result: Result<Value, PluginError>) {
        let waiter = state.withLock { state -> UnsafeContinuation<Result<Value, PluginError>, Never>? in
            guard state.result == nil else { return nil }
            state.result = result
            return state.waiter
        }
        waiter?.resume(returning: result)
    }

    func end(_ reason: CallsInFlight.Reason) {
        if reason == .late { pace?.exclude() }
        // Before the action can answer that it was cancelled.
        set(.failure(error(reason)))
        cancel?()
    }

    /// Waits for the result. Must be called only once.
    func result() async -> Result<Value, PluginError> {
        await withUnsafeContinuation { waiter in
            let result = state.withLock { state in
                state.waiter = waiter
                return state.result
            }
            if let result { waiter.resume(returning: result) }
        }
    }

    private func error(_ reason: CallsInFlight.Reason) -> PluginError {
        switch reason {
        case .late:
            PluginError(
                .deadlineExceeded,
                "The call took longer than \(call.timeout). It continues: a synchronous action cannot be interrupted.")
        case .clientLeft: PluginError(.cancelled, "The client has closed its connection.")
        case .gatewayEnds: .gatewayEnds
        }
    }
}
