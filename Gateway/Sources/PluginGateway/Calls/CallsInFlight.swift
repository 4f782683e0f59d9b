import PluginABI
import Synchronization

/// What is ended early: if its time is up, if its client leaves, and if the gateway ends.
protocol EarlyEnding: AnyObject, Sendable {
    /// Can be called more than once, and on any thread.
    func end(_ reason: CallsInFlight.Reason)
}

/// Code that is run to end something early.
final class EndHandler: EarlyEnding {
    private let body: @Sendable (CallsInFlight.Reason) -> Void

    init(_ body: @escaping @Sendable (CallsInFlight.Reason) -> Void) { self.body = body }

    func end(_ reason: CallsInFlight.Reason) { body(reason) }
}

/// The calls whose clients are waiting, with their deadlines.
final class CallsInFlight: Sendable {
    /// Why a call is ended.
    enum Reason: Sendable {
        /// The deadline of the call has passed.
        case late
        case clientLeft
        case gatewayEnds
    }

    private struct Entry {
        var deadline: ContinuousClock.Instant?
        let call: any EarlyEnding
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
    ///   - call: The call.
    ///   - deadline: The time at which the call is ended; `nil` if it has no deadline.
    func add(_ call: any EarlyEnding, until deadline: ContinuousClock.Instant? = nil) -> Int {
        let (number, isEnding, needsTask) = state.withLock { state in
            let entry = Entry(deadline: deadline, call: call)
            let number = state.free.popLast() ?? state.calls.count
            if number == state.calls.count { state.calls.append(entry) } else { state.calls[number] = entry }
            let needsTask = deadline != nil && !state.isTimed
            if needsTask { state.isTimed = true }
            return (number, state.isEnding, needsTask)
        }
        if needsTask { startTimer() }
        if isEnding { call.end(.gatewayEnds) }
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
            return state.calls.compactMap { $0?.call }
        }
        for call in calls { call.end(.gatewayEnds) }
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
            var late: [any EarlyEnding] = []
            for (number, call) in state.calls.enumerated() {
                guard let call, let deadline = call.deadline, deadline <= now else { continue }
                late.append(call.call)
                state.calls[number]?.deadline = nil
            }
            state.isTimed = state.calls.contains { $0?.deadline != nil }
            return (late, state.isTimed)
        }
        for call in late { call.end(.late) }
        return isTimed
    }
}

extension PluginError {
    static let gatewayEnds = PluginError(
        .hostStopping, "The gateway ended before the call was over. Whether it has had an effect is unknown.")
}
