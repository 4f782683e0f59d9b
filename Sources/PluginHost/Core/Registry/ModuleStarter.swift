import Dispatch
import PluginABI
import Synchronization

/// The starts of registered modules that calls wait for: one for each module at a time, however many calls ask for it.
final class ModuleStarter: Sendable {
    private struct State {
        var starts: [String: StartRequest] = [:]
        var begin: (@Sendable (StartRequest, _ isNew: Bool) -> Void)?
    }

    private let limit: Int
    private let state = Mutex(State())

    /// - Parameter limit: The number of calls that may wait for the start of one module.
    init(limit: Int) { self.limit = limit }

    /// - Parameter begin: Called each time a start is requested, on the thread that requests it. `isNew` is true if the
    ///   start was not in progress. Returns immediately or, on the thread that changes modules, when the start has
    ///   ended.
    func set(_ begin: @escaping @Sendable (StartRequest, _ isNew: Bool) -> Void) {
        state.withLock { $0.begin = begin }
    }

    /// Returns the start of a module, and begins it if it is not in progress.
    ///
    /// - Parameter callers: The modules whose calls wait for it.
    func start(_ name: String, for callers: [Generation] = []) -> StartRequest {
        let (start, isNew, begin) = state.withLock { state in
            let (start, isNew) = state.starts[name].map { ($0, false) } ?? (StartRequest(name, limit: limit), true)
            state.starts[name] = start
            return (start, isNew, state.begin)
        }
        start.add(callers)
        begin?(start, isNew)
        return start
    }

    /// Ends a start: the calls that wait for it look for the module again.
    ///
    /// - Parameters:
    ///   - error: The reason why the module does not serve; `nil` if it does, or if the table states the reason.
    ///   - refused: The callers that the error concerns, if it does not concern all; the others look for the module
    ///     again.
    func end(_ start: StartRequest, _ error: PluginError?, refusing refused: [Generation]? = nil) {
        state.withLock { state in if state.starts[start.name] === start { state.starts[start.name] = nil } }
        start.end(error, refusing: refused)
    }
}

/// The start of one registered module, for the calls that wait for it.
final class StartRequest: Sendable {
    private struct State {
        var outcome: PluginError??
        /// The number of the last generation that was created before the start of the module began.
        var lastNumber: Int?
        var waiting: [@Sendable () -> Void] = []
        /// The modules whose calls wait for it.
        var callers: [Generation] = []
        /// The callers that the error concerns; `nil` if it concerns all.
        var refused: [Generation]?
    }

    let name: String
    private let limit: Int
    private let state = Mutex(State())

    fileprivate init(_ name: String, limit: Int) { (self.name, self.limit) = (name, limit) }

    fileprivate func add(_ callers: [Generation]) {
        state.withLock { state in
            guard state.outcome == nil else { return }
            for caller in callers where !state.callers.contains(where: { $0 === caller }) {
                state.callers.append(caller)
            }
        }
    }

    /// The modules whose calls wait for the start. Empty once it has ended.
    var callers: [Generation] { state.withLock(\.callers) }

    /// Whether the start of a generation is part of this one, so that the generation's code cannot wait for this one.
    func includes(_ generation: Generation) -> Bool {
        guard generation.isStarting.load(ordering: .relaxed) else { return false }
        return state.withLock { $0.outcome == nil && $0.lastNumber.map { generation.number > $0 } == true }
    }

    /// Whether the start has ended.
    var isOver: Bool { state.withLock { $0.outcome != nil } }

    /// Records that the module is being started now.
    func setRunning() { state.withLock { $0.lastNumber = Generation.lastNumber } }

    fileprivate func end(_ error: PluginError?, refusing refused: [Generation]?) {
        let waiting = state.withLock { state in
            defer { (state.waiting, state.callers) = ([], []) }
            (state.outcome, state.refused) = (.some(error), refused)
            return state.waiting
        }
        for proceed in waiting { proceed() }
    }

    /// Calls `body` when the start has ended; immediately if it has.
    ///
    /// - Throws: `overloaded` if too many calls are waiting.
    func whenOver(_ body: @escaping @Sendable () -> Void) throws(PluginError) {
        let isOver: Bool? = state.withLock { state in
            if state.outcome != nil { return true }
            guard state.waiting.count < limit else { return nil }
            state.waiting.append(body)
            return false
        }
        guard let isOver else {
            throw PluginError(
                .overloaded, "\(name) is being started, and at most \(limit) calls may wait for that. Try again.")
        }
        if isOver { body() }
    }

    /// The reason why the module does not serve, once the start has ended.
    var error: PluginError? { state.withLock { $0.outcome ?? nil } }

    /// Whether the error of the start concerns a call that these modules run or wait for.
    func refuses(_ callers: [Generation]) -> Bool {
        guard let refused = state.withLock(\.refused) else { return true }
        return callers.contains { caller in refused.contains { $0 === caller } }
    }

    /// Blocks this thread until the start has ended. Returns false if it has not ended in time.
    ///
    /// - Throws: The error of ``whenOver(_:)``.
    func wait(within time: Duration) throws(PluginError) -> Bool {
        if state.withLock({ $0.outcome != nil }) { return true }
        let isOver = DispatchSemaphore(value: 0)
        try whenOver { isOver.signal() }
        return isOver.wait(timeout: .now() + time.dispatchInterval) == .success
    }
}
