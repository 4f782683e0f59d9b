import Dispatch
import PluginABI
import Synchronization

/// The waits of the thread that changes modules. While that thread waits for code of a module, it starts the registered
/// modules that calls need, since the code may have made one of these calls.
final class ChangeWaits: Sendable {
    private struct State {
        var requests: [StartRequest] = []
        /// What the thread waits for, the innermost last.
        var waiting: [DispatchSemaphore] = []
        var canServe: (@Sendable () -> Bool)?
        var serve: (@Sendable (StartRequest) -> Void)?
    }

    /// How many starts may wait for each other.
    private static let depthMax = 32

    private let queue: SerialThread
    private let state = Mutex(State())

    init(_ queue: SerialThread) { self.queue = queue }

    /// - Parameters:
    ///   - canServe: Whether a module can be started now. Called on the thread that changes modules, as `serve` is.
    ///   - serve: Starts a module during a wait.
    func set(_ canServe: @escaping @Sendable () -> Bool, _ serve: @escaping @Sendable (StartRequest) -> Void) {
        state.withLock { ($0.canServe, $0.serve) = (canServe, serve) }
    }

    /// Adds a module to be started. May be called from any thread.
    func add(_ start: StartRequest) {
        let waiting = state.withLock { state in
            state.requests.append(start)
            return state.waiting.last
        }
        waiting?.signal()
    }

    /// Returns the next module to be started. The caller must start it.
    func next() -> StartRequest? { state.withLock { $0.requests.isEmpty ? nil : $0.requests.removeFirst() } }

    /// Waits until the semaphore is signalled. Returns false if the time has passed.
    ///
    /// - Parameter isOver: Whether what the thread waits for has happened; the semaphore is signalled after that.
    func wait(for semaphore: DispatchSemaphore, until deadline: DispatchTime, _ isOver: () -> Bool) -> Bool {
        guard queue.isCurrent else { return semaphore.wait(timeout: deadline) == .success }
        let serve = state.withLock { state in
            state.waiting.append(semaphore)
            return state.waiting.count <= Self.depthMax && state.canServe?() == true ? state.serve : nil
        }
        defer { state.withLock { _ = $0.waiting.popLast() } }
        while true {
            if isOver() { return true }
            if let serve { while let start = next() { serve(start) } }
            if isOver() { return true }
            if semaphore.wait(timeout: deadline) == .timedOut { return isOver() }
        }
    }
}
