import CPluginHost
import Synchronization

/// Ends asynchronous calls whose deadline has passed.
///
/// The thread wakes at the earliest deadline that anybody noted, and searches the records of running calls: nothing has
/// to be kept in order, or taken out again, for the many calls that end in time.
enum Deadlines {
    private static let next = Mutex(Int64.max)

    /// Keeps the threads that end calls until ``releaseThreads()``: there may be none to be had when a deadline passes. Counted.
    static func retainThreads() {
        SerialThread.timers.retainThread()
        ThreadPool.deliveries.retainThread()
        ThreadPool.shared.retainThread()
    }

    static func releaseThreads() {
        SerialThread.timers.releaseThread()
        ThreadPool.deliveries.releaseThread()
        ThreadPool.shared.releaseThread()
    }

    /// Takes note of a deadline, in CLOCK_MONOTONIC nanoseconds.
    static func note(_ deadline: Int64) {
        next.withLock { next in
            guard deadline < next else { return }
            next = deadline
            SerialThread.timers.async(at: deadline) { endOverdue(deadline) }
        }
    }

    private static func endOverdue(_ noted: Int64) {
        // Else an earlier deadline was noted since, and has looked at this one, too.
        let isNext = next.withLock { next in
            guard next == noted else { return false }
            next = .max
            return true
        }
        guard isNext else { return }
        let now = monotonicNow()
        var next = Int64.max
        for record in runningCalls() where record.pointer.pointee.is_pooled != 0 {
            let token = record.token
            guard let endpoint = record.endpoint, record.phase(of: token) == .open else { continue }
            let deadline = record.deadline
            if deadline != 0, deadline <= now {
                // Elsewhere: what a caller does when it is told must not hold up the deadlines of others.
                ThreadPool.deliveries.run { Calls.abandon(token, .deadlineExceeded(endpoint)) }
            } else if deadline != 0 {
                next = min(next, deadline)
            }
        }
        if next < .max { note(next) }
    }
}
