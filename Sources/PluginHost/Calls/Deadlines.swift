import CPluginHost
import Synchronization

/// Ends asynchronous calls whose deadline has passed.
///
/// The thread wakes at the earliest recorded deadline and searches the records of running calls, so calls that end in
/// time, which most do, need not be sorted or removed.
enum Deadlines {
    private static let next = Mutex(Int64.max)

    /// Starts the threads that end calls and keeps them running until the matching ``releaseThreads()``, because it may
    /// be impossible to create a thread when a deadline passes.
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

    /// Records a deadline, in nanoseconds of CLOCK_MONOTONIC.
    static func note(_ deadline: Int64) {
        next.withLock { next in
            guard deadline < next else { return }
            next = deadline
            SerialThread.timers.async(at: deadline) { endOverdue(deadline) }
        }
    }

    private static func endOverdue(_ noted: Int64) {
        // If `next` holds another deadline by now, that one was recorded later but is earlier, and its search covers
        // this one.
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
                // On another thread, because a caller's completion must not delay other deadlines.
                ThreadPool.deliveries.run { Calls.abandon(token, .deadlineExceeded(endpoint)) }
            } else if deadline != 0 {
                next = min(next, deadline)
            }
        }
        if next < .max { note(next) }
    }
}
