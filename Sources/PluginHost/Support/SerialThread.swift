import CPluginHost
import Dispatch
import Glibc
import PluginABI
import Synchronization

/// A serial queue with a thread of its own, which does not depend on threads that may be blocked elsewhere.
///
/// Work runs one piece at a time, in the order in which it was added: asynchronous work on the queue's thread,
/// synchronous work on the thread of its caller. The thread is created by ``retainThread()`` or by the first
/// asynchronous work; while it is not retained, it ends as soon as there is nothing to do.
package final class SerialThread: Sendable {
    private enum Entry {
        case work(@Sendable () -> Void)
        /// A thread that waits for its turn on the queue.
        case turn(DispatchSemaphore)
    }

    private struct Delayed {
        /// The time in nanoseconds of CLOCK_MONOTONIC.
        let due: Int64
        let number: Int
        let work: @Sendable () -> Void
    }

    private struct State {
        var entries: [Entry] = []
        /// The delayed work, the earliest first.
        var delayed: [Delayed] = []
        var lastNumber = 0
        /// Whether a thread has the queue. `holder` is that thread, as soon as it has resumed.
        var isTaken = false
        var holder: pthread_t = 0
        var hasThread = false
        var users = 0
        /// Whether the thread waits and has not been woken yet.
        var isAsleep = false
        var watched: Watched?
        /// The eventfds of watches that have ended. Only the thread closes them, when it looks for its next step:
        /// before that, it may be about to wait for one of them.
        var unused: [Int32] = []
    }

    private struct Watched {
        let descriptor: Int32
        /// An eventfd that wakes the thread while it waits for the descriptor.
        let wake: Int32
        let handler: @Sendable () -> Void
        /// Whether a call of the handler is queued.
        var isTold = false
    }

    private let name: String
    private let state = Mutex(State())
    private let wanted = DispatchSemaphore(value: 0)

    package init(_ name: String) { self.name = name }

    // MARK: Lifetime

    /// Creates the thread, and keeps it until ``releaseThread()`` has been called as often as this function.
    ///
    /// - Returns: Whether there is a thread; if not, it is created as soon as that is possible.
    @discardableResult
    package func retainThread() -> Bool {
        state.withLock { state in
            state.users += 1
            return makeThread(&state)
        }
    }

    package func releaseThread() {
        state.withLock { state in
            state.users -= 1
            wake(&state)
        }
    }

    /// Whether there is a thread, for tests.
    var hasThread: Bool { state.withLock { $0.hasThread } }

    @discardableResult
    private func makeThread(_ state: inout State) -> Bool {
        if !state.hasThread { state.hasThread = DetachedThread.tryStart(name) { self.run() } == 0 }
        return state.hasThread
    }

    private func wake(_ state: inout State) {
        guard state.hasThread else {
            makeThread(&state)
            return
        }
        guard state.isAsleep else { return }
        state.isAsleep = false
        if let watched = state.watched { plugin_host_wake(watched.wake) }
        wanted.signal()
    }

    // MARK: Work

    /// Whether this thread has the queue, which means that it runs work of the queue.
    package var isCurrent: Bool { state.withLock { $0.isTaken && $0.holder == pthread_self() } }

    /// Runs work on the queue's thread.
    package func async(_ work: @escaping @Sendable () -> Void) {
        state.withLock { state in
            state.entries.append(.work(work))
            if !state.isTaken { wake(&state) }
        }
    }

    /// Runs work on the queue's thread after a delay. Returns the number for ``cancel(_:)``.
    @discardableResult
    package func async(after time: Duration, _ work: @escaping @Sendable () -> Void) -> Int {
        let (due, isTooLate) = monotonicNow().addingReportingOverflow(max(0, time.nanoseconds))
        return async(at: isTooLate ? .max : due, work)
    }

    /// Runs work on the queue's thread at a time of CLOCK_MONOTONIC, in nanoseconds.
    @discardableResult
    package func async(at due: Int64, _ work: @escaping @Sendable () -> Void) -> Int {
        state.withLock { state in
            state.lastNumber += 1
            let index = state.delayed.firstIndex { $0.due > due } ?? state.delayed.endIndex
            state.delayed.insert(Delayed(due: due, number: state.lastNumber, work: work), at: index)
            if index == 0 { wake(&state) }
            return state.lastNumber
        }
    }

    /// Cancels delayed work that has not become due.
    package func cancel(_ number: Int) {
        state.withLock { state in
            state.delayed.removeAll { $0.number == number }
            if state.users == 0, state.delayed.isEmpty, state.hasThread { wake(&state) }
        }
    }

    /// Runs work on this thread after all work that was added before. Must not be called from work of the queue itself.
    package func sync<Result>(_ work: () -> Result) -> Result {
        take()
        defer { giveBack() }
        return work()
    }

    private func take() {
        let turn: DispatchSemaphore? = state.withLock { state in
            precondition(!state.isTaken || state.holder != pthread_self(), "\(name) waits for itself")
            guard state.isTaken || !state.entries.isEmpty else {
                (state.isTaken, state.holder) = (true, pthread_self())
                return nil
            }
            let turn = DispatchSemaphore(value: 0)
            state.entries.append(.turn(turn))
            return turn
        }
        guard let turn else { return }
        // If no thread can be created, this one runs the work that was added before.
        while let work = state.withLock({ makeThread(&$0) ? nil : takeWork(&$0) }) {
            work()
            giveBack()
        }
        turn.wait()
        state.withLock { $0.holder = pthread_self() }
    }

    private func takeWork(_ state: inout State) -> (@Sendable () -> Void)? {
        guard !state.isTaken, case .work(let work)? = state.entries.first else { return nil }
        state.entries.removeFirst()
        (state.isTaken, state.holder) = (true, pthread_self())
        return work
    }

    private func giveBack() {
        state.withLock { state in
            (state.isTaken, state.holder) = (false, 0)
            switch state.entries.first {
            case .turn(let turn):
                state.entries.removeFirst()
                state.isTaken = true
                turn.signal()
            case .work: wake(&state)
            case nil: if state.users == 0, state.hasThread { wake(&state) }
            }
        }
    }

    // MARK: A descriptor

    /// Runs a handler on the queue's thread whenever a descriptor can be read, until ``unwatch()``. One call at a time.
    ///
    /// - Returns: 0, or the error code: there may be no descriptor left for the eventfd that wakes the thread.
    package func watch(_ descriptor: Int32, _ handler: @escaping @Sendable () -> Void) -> Int32 {
        let made = plugin_host_wake_create()
        guard made >= 0 else { return errno }
        state.withLock { state in
            wake(&state)
            state.watched = Watched(descriptor: descriptor, wake: made, handler: handler)
        }
        return 0
    }

    /// Ends the watch that ``watch(_:_:)`` began. The descriptor may be closed afterwards.
    package func unwatch() {
        state.withLock { state in
            guard let watched = state.watched else { return }
            wake(&state)
            state.watched = nil
            if state.hasThread { state.unused.append(watched.wake) } else { close(watched.wake) }
        }
    }

    private func tell(_ watched: Watched, _ state: inout State) {
        state.watched?.isTold = true
        state.entries.append(
            .work {
                watched.handler()
                self.state.withLock { $0.watched?.isTold = false }
            })
    }

    // MARK: The thread

    private func run() { while let step = state.withLock({ next(&$0) }) { step() } }

    /// Returns the thread's next step: work, or waiting. `nil` if the thread should end.
    private func next(_ state: inout State) -> (@Sendable () -> Void)? {
        for descriptor in state.unused { close(descriptor) }
        state.unused = []
        let now = state.delayed.isEmpty ? 0 : monotonicNow()
        let due = state.delayed.prefix { $0.due <= now }
        state.entries += due.map { .work($0.work) }
        state.delayed.removeFirst(due.count)
        if let work = takeWork(&state) {
            return {
                work()
                self.giveBack()
            }
        }
        if state.users == 0, state.entries.isEmpty, state.delayed.isEmpty, state.watched == nil {
            state.hasThread = false
            return nil
        }
        state.isAsleep = true
        let watched = state.watched.flatMap { $0.isTold ? nil : $0 }
        let time = state.delayed.first?.due ?? .max
        return {
            self.wait(until: time, watched?.descriptor ?? -1, watched?.wake ?? -1)
            self.state.withLock { $0.isAsleep = false }
        }
    }

    /// Waits until a time, until the thread is woken, or until the descriptor, if there is one, can be read.
    ///
    /// - Parameter due: The time in nanoseconds of CLOCK_MONOTONIC.
    private func wait(until due: Int64, _ descriptor: Int32, _ wake: Int32) {
        let remaining = due == .max ? due : max(0, due - monotonicNow())
        guard descriptor >= 0 else {
            if due == .max { return wanted.wait() }
            _ = wanted.wait(timeout: .now() + .nanoseconds(Int(remaining)))
            return
        }
        var polled = [
            pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0),
            pollfd(fd: wake, events: Int16(POLLIN), revents: 0),
        ]
        // Rounded up, so that work due within a fraction of a millisecond does not cause a busy loop.
        let milliseconds = due == .max ? -1 : Int32(min(remaining / 1_000_000 + 1, 60_000))
        guard poll(&polled, 2, milliseconds) > 0 else { return }
        state.withLock { state in
            // If the watch has ended, other files may have these descriptors by now.
            guard let watched = state.watched, watched.descriptor == descriptor, watched.wake == wake else { return }
            if polled[1].revents != 0 { plugin_host_wake_clear(wake) }
            if polled[0].revents != 0 { tell(watched, &state) }
        }
    }
}
