import CPluginABI
import PluginABI
import Synchronization

/// What a synchronous action has answered.
struct ActionOutcome {
    let host: UnsafePointer<plugin_host>
    var result: Result<Value, PluginError> = .success(.null)

    init(host: UnsafePointer<plugin_host>) { self.host = host }

    /// What tells an outcome that is waited for.
    static func receiver(_ outcome: UnsafeMutablePointer<ActionOutcome>) -> Calls.Receiver {
        Calls.Receiver(
            completion: { data, value, error in
                data!.assumingMemoryBound(to: ActionOutcome.self).pointee.set(value, error)
            }, data: outcome)
    }

    mutating func set(_ value: UnsafePointer<plugin_value>?, _ error: UnsafePointer<plugin_error>?) {
        result = Self.result(value, error, host)
    }

    static func result(
        _ value: UnsafePointer<plugin_value>?, _ error: UnsafePointer<plugin_error>?, _ host: UnsafePointer<plugin_host>
    ) -> Result<Value, PluginError> {
        if let error { return .failure(PluginError(error.pointee)) }
        return .success(value.map { Value(copying: $0.pointee, host: host) } ?? .null)
    }
}

/// What the rest of a call has come to, for the thread that waits for it.
final class RestOutcome: Sendable {
    let value = Mutex<Result<Value, any Error>?>(nil)
}

/// A call of an action whose outcome a task waits for.
final class WaitingCall: Sendable {
    private nonisolated(unsafe) let host: UnsafePointer<plugin_host>  // It lives as long as the process.
    private typealias Continuation = UnsafeContinuation<Result<Value, PluginError>?, Never>
    private let continuation = Mutex<Continuation?>(nil)
    private let token = Mutex<(call: plugin_token, isCancelled: Bool)>((0, false))

    private init(host: UnsafePointer<plugin_host>) { self.host = host }

    /// Begins a call and awaits its outcome; with the task it is cancelled. Nil when `call` returns nil, and tells nobody.
    static func outcome(
        host: UnsafePointer<plugin_host>, _ call: (Calls.Receiver) -> plugin_token?
    ) async -> Result<Value, PluginError>? {
        let waiting = WaitingCall(host: host)
        return await withTaskCancellationHandler {
            await withUnsafeContinuation { waiting.start($0, call) }
        } onCancel: {
            waiting.cancel()
        }
    }

    private func start(_ continuation: Continuation, _ call: (Calls.Receiver) -> plugin_token?) {
        self.continuation.withLock { $0 = continuation }
        let hold = Unmanaged.passRetained(self).toOpaque()
        let answer = call(
            Calls.Receiver(
                completion: { data, value, error in
                    let waiting = Unmanaged<WaitingCall>.fromOpaque(data!).takeRetainedValue()
                    let result = ActionOutcome.result(value, error, waiting.host)
                    waiting.continuation.withLock { $0 }?.resume(returning: result)
                }, data: hold))
        guard let started = answer else {
            Unmanaged<WaitingCall>.fromOpaque(hold).release()
            return continuation.resume(returning: nil)
        }
        let isCancelled = token.withLock {
            $0.call = started
            return $0.isCancelled
        }
        if isCancelled { cancel() }
    }

    private func cancel() {
        let started = token.withLock {
            $0.isCancelled = true
            return $0.call
        }
        if started != 0 { Calls.abandon(started, PluginError(.cancelled, "The caller cancelled the call.")) }
    }
}
