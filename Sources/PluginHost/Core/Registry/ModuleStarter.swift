import Dispatch
import PluginABI
import Synchronization

/// The starts of registered modules that calls wait for: one for each module at a time, however many calls ask for it.
final class ModuleStarter: Sendable {
    private struct State {
        var starts: [String: StartRequest] = [:]
        var begin: (@Sendable (StartRequest) -> Void)?
    }

    private let state = Mutex(State())

    /// - Parameter begin: Called with each start, on the thread that asks for it. Returns at once, or, on the thread
    ///   that changes modules, when the start has ended.
    func set(_ begin: @escaping @Sendable (StartRequest) -> Void) { state.withLock { $0.begin = begin } }

    /// Returns the start of a module. It is begun if it is not going on.
    func start(_ name: String) -> StartRequest {
        let (start, begin) = state.withLock { state -> (StartRequest, (@Sendable (StartRequest) -> Void)?) in
            if let present = state.starts[name] { return (present, nil) }
            let start = StartRequest(name)
            state.starts[name] = start
            return (start, state.begin)
        }
        start.begin(begin)
        return start
    }

    /// Ends a start: the calls that wait for it look for the module again.
    ///
    /// - Parameter error: The reason why the module does not serve; `nil` if it does, or the table says why not.
    func end(_ start: StartRequest, _ error: PluginError?) {
        state.withLock { state in if state.starts[start.name] === start { state.starts[start.name] = nil } }
        start.end(error)
    }
}

/// The start of one registered module, for those who wait for it.
final class StartRequest: Sendable {
    private struct State {
        var outcome: PluginError??
        /// The number of the last generation that was created before the module was being started.
        var lastNumber: Int?
        var waiting: [@Sendable () -> Void] = []
    }

    let name: String
    private let state = Mutex(State())

    fileprivate init(_ name: String) { self.name = name }

    fileprivate func begin(_ begin: (@Sendable (StartRequest) -> Void)?) { begin?(self) }

    /// Whether the start of a generation is part of this one, so that its code cannot wait for it.
    func includes(_ generation: Generation) -> Bool {
        guard generation.isStarting.load(ordering: .relaxed) else { return false }
        return state.withLock { $0.outcome == nil && $0.lastNumber.map { generation.number > $0 } == true }
    }

    /// Whether it has ended.
    var isOver: Bool { state.withLock { $0.outcome != nil } }

    /// Records that the module is being started now.
    func setRunning() { state.withLock { $0.lastNumber = Generation.lastNumber } }

    fileprivate func end(_ error: PluginError?) {
        let waiting = state.withLock { state in
            defer { state.waiting = [] }
            state.outcome = .some(error)
            return state.waiting
        }
        for proceed in waiting { proceed() }
    }

    /// Calls `body` when the start has ended; immediately if it has.
    func whenOver(_ body: @escaping @Sendable () -> Void) {
        let isOver = state.withLock { state in
            if state.outcome == nil { state.waiting.append(body) }
            return state.outcome != nil
        }
        if isOver { body() }
    }

    /// The reason why the module does not serve, once the start has ended.
    var error: PluginError? { state.withLock { $0.outcome ?? nil } }

    /// Blocks this thread until the start has ended. Returns false if it has not ended in time.
    func wait(within time: Duration) -> Bool {
        if state.withLock({ $0.outcome != nil }) { return true }
        let isOver = DispatchSemaphore(value: 0)
        whenOver { isOver.signal() }
        return isOver.wait(timeout: .now() + time.dispatchInterval) == .success
    }
}
