import Dispatch
import PluginABI
import Synchronization

/// The waits of the thread that changes modules. While that thread waits for code of a module, it starts the registered
/// modules that this code calls.
final class ChangeWaits: Sendable {
    private struct State {
        /// The requests for starts that have not begun.
        var requests: [StartRequest] = []
        /// The semaphores that the thread waits for, the innermost last.
        var waiting: [DispatchSemaphore] = []
        /// How many hooks of a generation are running.
        var hooks: [ObjectIdentifier: Int] = [:]
        var canServe: (@Sendable (StartRequest) -> Bool)?
        var serve: (@Sendable (StartRequest, _ isTooDeep: Bool) -> Void)?
    }

    /// How many starts may wait for each other.
    static let depthMax = 32

    let queue: SerialThread
    private let state = Mutex(State())

    init(_ queue: SerialThread) { self.queue = queue }

    /// - Parameters:
    ///   - canServe: Whether a module may be started during a wait. Called on the thread that changes modules, as
    ///     `serve` is.
    ///   - serve: Starts a module during a wait, or refuses to if too many starts wait for each other.
    func set(
        _ canServe: @escaping @Sendable (StartRequest) -> Bool,
        _ serve: @escaping @Sendable (StartRequest, _ isTooDeep: Bool) -> Void
    ) {
        state.withLock { ($0.canServe, $0.serve) = (canServe, serve) }
    }

    /// Adds a module to be started. May be called from any thread.
    func add(_ start: StartRequest) {
        state.withLock { $0.requests.append(start) }
        wake()
    }

    /// Lets the thread check the requests again, since one of them has a new caller. May be called from any thread.
    func wake() { state.withLock(\.waiting.last)?.signal() }

    /// Returns the next module to be started. The caller must start it.
    ///
    /// - Parameter isWanted: Whether a module should be started now.
    func next(where isWanted: (StartRequest) -> Bool = { _ in true }) -> StartRequest? {
        let requests = state.withLock(\.requests)
        guard let next = requests.first(where: isWanted) else { return nil }
        return take(next) ? next : self.next(where: isWanted)
    }

    /// Removes a module from those to be started. Returns false if it is not one of them.
    func take(_ start: StartRequest) -> Bool {
        state.withLock { state in
            guard let index = state.requests.firstIndex(where: { $0 === start }) else { return false }
            state.requests.remove(at: index)
            return true
        }
    }

    // MARK: Hooks

    /// Records that a hook of a module begins. May be called from any thread.
    func begin(_ generation: Generation) { state.withLock { $0.hooks[ObjectIdentifier(generation), default: 0] += 1 } }

    /// Records that a hook of a module has ended. May be called from any thread.
    func end(_ generation: Generation) {
        state.withLock { state in
            let left = (state.hooks[ObjectIdentifier(generation)] ?? 1) - 1
            state.hooks[ObjectIdentifier(generation)] = left > 0 ? left : nil
        }
    }

    /// Whether a hook of a module is running.
    func runsHook(_ generation: Generation) -> Bool {
        state.withLock { $0.hooks[ObjectIdentifier(generation)] != nil }
    }

    // MARK: Waiting

    /// Waits until the semaphore is signalled. Returns false if the time has passed.
    ///
    /// - Parameter isOver: Whether what the thread waits for has happened; the semaphore is signalled after that.
    func wait(for semaphore: DispatchSemaphore, until deadline: DispatchTime, _ isOver: () -> Bool) -> Bool {
        guard queue.isCurrent else { return semaphore.wait(timeout: deadline) == .success }
        let (canServe, serve, depth) = state.withLock { state in
            state.waiting.append(semaphore)
            return (state.canServe, state.serve, state.waiting.count)
        }
        defer { state.withLock { _ = $0.waiting.popLast() } }
        while true {
            if isOver() { return true }
            if let canServe, let serve {
                while let start = next(where: canServe) { serve(start, depth > Self.depthMax) }
            }
            if isOver() { return true }
            if semaphore.wait(timeout: deadline) == .timedOut { return isOver() }
        }
    }
}
