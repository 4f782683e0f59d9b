import Dispatch
import Synchronization

/// A call whose outcome may arrive later. The code that starts the call keeps this object until the host has completed
/// the call, so the host's pointer to the object is unretained.
///
/// `result` and `waiter` are each written once, before the state that announces them. Once the state is `finished`,
/// only the waiting code uses the object, and may release it.
package final class PendingCall: @unchecked Sendable {
    private enum State: UInt8, AtomicRepresentable {
        case running, awaited, finished
    }

    private enum Waiter {
        case task(UnsafeContinuation<Void, Never>)
        case thread(DispatchSemaphore)

        func tell() {
            switch self {
            case .task(let continuation): continuation.resume()
            case .thread(let arrived): arrived.signal()
            }
        }
    }

    private let host: UnsafePointer<plugin_host>
    private let state = Atomic(State.running)
    private var result: Result<Value, PluginError> = .success(.null)
    private var waiter: Waiter?
    /// The token to cancel the call by; 0 if the call is over. Set before anything waits for the call, and therefore
    /// before anything cancels it.
    private let token = Atomic<plugin_token>(0)

    package init(host: UnsafePointer<plugin_host>) { self.host = host }

    /// Starts the call. The caller must not release the object before it has asked for the outcome.
    func start(_ parent: plugin_token, _ request: UnsafePointer<plugin_request>) {
        start { host.pointee.call(host, parent, request, $0, $1) }
    }

    /// Starts an operation whose outcome the host reports once; `begin` returns the token to cancel it by.
    package func start(_ begin: (plugin_completion, UnsafeMutableRawPointer) -> plugin_token) {
        token.store(begin(Self.completion, Unmanaged.passUnretained(self).toOpaque()), ordering: .releasing)
    }

    private func cancel() {
        let started = token.load(ordering: .acquiring)
        if started != 0 { host.pointee.cancel(host, started) }
    }

    private static let completion: plugin_completion = { data, value, error in
        Unmanaged<PendingCall>.fromOpaque(data!)._withUnsafeGuaranteedRef { pending in
            pending.result = Result(value, error, host: pending.host)
            pending.finish()
        }
    }

    private func finish() {
        if move(from: .running, to: .finished) { return }
        let waiter = waiter
        state.store(.finished, ordering: .releasing)
        waiter?.tell()
    }

    private func move(from old: State, to new: State) -> Bool {
        state.compareExchange(expected: old, desired: new, ordering: .acquiringAndReleasing).exchanged
    }

    /// Resumes the waiter when the outcome has arrived: immediately or later.
    private func tell(_ waiter: Waiter) {
        self.waiter = waiter
        if !move(from: .running, to: .awaited) { waiter.tell() }
    }

    /// Returns the outcome when it has arrived. Cancelling the task cancels the call.
    @inline(__always)
    package func outcome() async throws(PluginError) -> Value {
        if let outcome = earlyOutcome { return try outcome.get() }
        return try await lateOutcome()
    }

    /// The outcome, if it has arrived. Many calls are over as soon as they have been started, and need no waiter.
    package var earlyOutcome: Result<Value, PluginError>? { isFinished ? result : nil }

    private var isFinished: Bool { state.load(ordering: .acquiring) == .finished }

    /// Returns the outcome when it has arrived. For a caller that has found `earlyOutcome` to be `nil`.
    package func lateOutcome() async throws(PluginError) -> Value {
        await withTaskCancellationHandler {
            await withUnsafeContinuation { tell(.task($0)) }
        } onCancel: {
            cancel()
        }
        return try result.get()
    }

    /// Returns the outcome. Blocks this thread until it has arrived.
    package func wait() -> Result<Value, PluginError> {
        let arrived = DispatchSemaphore(value: 0)
        tell(.thread(arrived))
        arrived.wait()
        _ = isFinished  // An acquiring load, which makes the write to `result` visible.
        return result
    }
}
