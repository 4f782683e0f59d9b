import Dispatch
import Synchronization

/// A call whose outcome may arrive later. Who awaits it keeps it, and does so until the host has completed it: so the
/// host's pointer is not counted.
///
/// `result` and `waiter` are each written once, before the state says so.
final class PendingCall: @unchecked Sendable {
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

    init(host: UnsafePointer<plugin_host>) { self.host = host }

    func start(_ parent: plugin_token, _ request: UnsafePointer<plugin_request>) {
        start { host.pointee.call(host, parent, request, $0, $1) }
    }

    func start(_ begin: (plugin_completion, UnsafeMutableRawPointer) -> plugin_token) {
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

    /// Once the waiter can know the outcome it may let go of this object: after that nothing here touches it.
    private func finish() {
        guard state.exchange(.finished, ordering: .acquiringAndReleasing) == .awaited, let waiter else { return }
        waiter.tell()
    }

    /// Tells the waiter when the outcome is there: now or later.
    private func tell(_ waiter: Waiter) {
        self.waiter = waiter
        let isRunning = state.compareExchange(
            expected: .running, desired: .awaited, ordering: .acquiringAndReleasing
        ).exchanged
        if !isRunning { waiter.tell() }
    }

    /// The outcome, awaited; the call is cancelled with the task. Many calls are over when they have been started: then
    /// nothing is kept for the wait.
    @inline(__always)
    func outcome() async throws(PluginError) -> Value {
        if state.load(ordering: .acquiring) != .finished { await finished() }
        return try result.get()
    }

    private func finished() async {
        await withTaskCancellationHandler {
            await withUnsafeContinuation { tell(.task($0)) }
        } onCancel: {
            cancel()
        }
    }

    /// The outcome; blocks this thread until it is there.
    func wait() -> Result<Value, PluginError> {
        let arrived = DispatchSemaphore(value: 0)
        tell(.thread(arrived))
        arrived.wait()
        return result
    }
}
