import Dispatch
import Synchronization

/// A call whose outcome may arrive later. Who has started it awaits it, and keeps it until the host has completed it: so
/// the host's pointer is not counted.
///
/// `result` and `waiter` are each written once, before the state says so. Once it says `finished`, only who awaits it
/// touches the object, and may let go of it.
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
    /// What the host cancels it by; 0 when it is over. Set before anybody waits, and so before anybody cancels.
    private let token = Atomic<plugin_token>(0)

    package init(host: UnsafePointer<plugin_host>) { self.host = host }

    /// Starts the call. Whoever gets the object must not let go of it before it has asked for the outcome.
    func start(_ parent: plugin_token, _ request: UnsafePointer<plugin_request>) {
        start { host.pointee.call(host, parent, request, $0, $1) }
    }

    /// Starts anything that the host tells once; `begin` returns the token to cancel it by.
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

    /// Tells the waiter when the outcome is there: now or later.
    private func tell(_ waiter: Waiter) {
        self.waiter = waiter
        if !move(from: .running, to: .awaited) { waiter.tell() }
    }

    /// The outcome, awaited; the call is cancelled with the task.
    @inline(__always)
    package func outcome() async throws(PluginError) -> Value {
        if let outcome = earlyOutcome { return try outcome.get() }
        return try await lateOutcome()
    }

    /// The outcome, if it is there. Many calls are over when they have been started: then nothing is kept for the wait.
    package var earlyOutcome: Result<Value, PluginError>? { isFinished ? result : nil }

    private var isFinished: Bool { state.load(ordering: .acquiring) == .finished }

    /// The outcome, awaited, when it was not there.
    package func lateOutcome() async throws(PluginError) -> Value {
        await withTaskCancellationHandler {
            await withUnsafeContinuation { tell(.task($0)) }
        } onCancel: {
            cancel()
        }
        return try result.get()
    }

    /// The outcome; blocks this thread until it is there.
    package func wait() -> Result<Value, PluginError> {
        let arrived = DispatchSemaphore(value: 0)
        tell(.thread(arrived))
        arrived.wait()
        _ = isFinished  // After all that was done to the outcome.
        return result
    }
}
