import PluginABI
import Synchronization

/// The outcome of one call, which arrives once: the first one counts.
final class CallOutcome: Sendable {
    private enum State {
        case running
        case awaited(UnsafeContinuation<Result<Value, PluginError>, Never>)
        case over(Result<Value, PluginError>)
    }

    private let state = Mutex(State.running)

    func set(_ outcome: Result<Value, PluginError>) {
        let waiter: UnsafeContinuation<Result<Value, PluginError>, Never>? = state.withLock { state in
            switch state {
            case .running: state = .over(outcome)
            case .awaited(let waiter):
                state = .over(outcome)
                return waiter
            case .over: break
            }
            return nil
        }
        waiter?.resume(returning: outcome)
    }

    /// Waits for the outcome. Must be called only once.
    func get() async -> Result<Value, PluginError> {
        await withUnsafeContinuation { waiter in
            let outcome: Result<Value, PluginError>? = state.withLock { state in
                if case .over(let outcome) = state { return outcome }
                state = .awaited(waiter)
                return nil
            }
            if let outcome { waiter.resume(returning: outcome) }
        }
    }
}

/// The calls whose clients are waiting, with their deadlines.
final class CallsInFlight: Sendable {
    /// Why a call is ended.
    enum Reason: Sendable {
        /// The deadline of the call has passed.
        case late
        case gatewayEnds
    }

    private struct Entry {
        var deadline: ContinuousClock.Instant?
        let end: @Sendable (Reason) -> Void
    }

    private struct State {
        /// The calls by their numbers. The numbers of calls that are over are used again.
        var calls: [Entry?] = []
        var free: [Int] = []
        var isEnding = false
        /// Whether a task looks for calls whose time is up.
        var isTimed = false
    }

    /// The longest time by which a call exceeds its deadline, unless the machine is busy.
    static let period = Duration.milliseconds(50)

    private let state = Mutex(State())

    /// Adds a call.
    ///
    /// - Parameters:
    ///   - deadline: The time at which the call is ended; `nil` if it has no deadline.
    ///   - end: Ends the call. Can be called more than once, and on any thread.
    func add(until deadline: ContinuousClock.Instant? = nil, _ end: @escaping @Sendable (Reason) -> Void) -> Int {
        let (number, isEnding, needsTask) = state.withLock { state in
            let entry = Entry(deadline: deadline, end: end)
            let number = state.free.popLast() ?? state.calls.count
            if number == state.calls.count { state.calls.append(entry) } else { state.calls[number] = entry }
            let needsTask = deadline != nil && !state.isTimed
            if needsTask { state.isTimed = true }
            return (number, state.isEnding, needsTask)
        }
        if needsTask { startTimer() }
        if isEnding { end(.gatewayEnds) }
        return number
    }

    /// Removes a call. Must be called once for each call.
    func remove(_ number: Int) {
        let removed = state.withLock { state in
            let entry = state.calls[number]
            state.calls[number] = nil
            state.free.append(number)
            return entry
        }
        // What the entry refers to is freed outside of the lock.
        withExtendedLifetime(removed) {}
    }

    /// Ends all calls, and every call that is added later.
    func endAll() {
        let calls = state.withLock { state in
            state.isEnding = true
            return state.calls.compactMap { $0?.end }
        }
        for end in calls { end(.gatewayEnds) }
    }

    /// Starts one timer for all calls, which runs as long as any of them has a deadline. A timer for each call would
    /// cost more than a short call.
    private func startTimer() {
        Task { [weak self] in
            repeat { try? await Task.sleep(for: Self.period) } while self?.endLate() == true
        }
    }

    /// Ends the calls whose time is up. Returns false if no call has a deadline any more.
    private func endLate() -> Bool {
        let now = ContinuousClock.now
        let (late, isTimed) = state.withLock { state in
            var late: [@Sendable (Reason) -> Void] = []
            for (number, call) in state.calls.enumerated() {
                guard let call, let deadline = call.deadline, deadline <= now else { continue }
                late.append(call.end)
                state.calls[number]?.deadline = nil
            }
            state.isTimed = state.calls.contains { $0?.deadline != nil }
            return (late, state.isTimed)
        }
        for end in late { end(.late) }
        return isTimed
    }
}

extension PluginError {
    static let gatewayEnds = PluginError(
        .hostStopping, "The gateway ended before the call was over. Whether it has had an effect is unknown.")
}
