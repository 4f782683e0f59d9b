import CPluginHost
import Dispatch
import Synchronization

/// Ends asynchronous calls whose deadline has passed.
///
/// There is one timer, set to the earliest deadline that anybody noted. When it fires, the records of running calls are
/// searched: nothing has to be kept in order, or taken out again, for the many calls that end in time.
enum Deadlines {
    private struct State: @unchecked Sendable {
        var next = Int64.max
        var timer: (any DispatchSourceTimer)?
    }
    private static let state = Mutex(State())
    private static let queue = DispatchQueue(label: "pluginhost.deadlines")

    /// Takes note of a deadline, in CLOCK_MONOTONIC nanoseconds.
    static func note(_ deadline: Int64) {
        state.withLock { state in
            guard deadline < state.next else { return }
            state.next = deadline
            let timer = state.timer ?? makeTimer()
            state.timer = timer
            timer.schedule(deadline: .now() + .nanoseconds(Int(max(0, deadline - monotonicNow()))))
        }
    }

    private static func makeTimer() -> any DispatchSourceTimer {
        let timer = DispatchSource.makeTimerSource(queue: queue)
        timer.setEventHandler { endOverdue() }
        timer.activate()
        return timer
    }

    private static func endOverdue() {
        state.withLock { $0.next = .max }
        let now = monotonicNow()
        var next = Int64.max
        for record in runningCalls() where record.pointer.pointee.is_pooled != 0 {
            let token = record.token
            guard let endpoint = record.endpoint, record.phase(of: token) == .open else { continue }
            let deadline = record.deadline
            if deadline != 0, deadline <= now {
                // Elsewhere: what a caller does when it is told must not hold up the deadlines of others.
                DispatchQueue.global().async { Dispatcher.abandon(token, .deadlineExceeded(endpoint)) }
            } else if deadline != 0 {
                next = min(next, deadline)
            }
        }
        if next < .max { note(next) }
    }
}
