import Synchronization

/// The calls in a worker process that have not returned in time. They may still use their instances and objects, so
/// code that destroys these waits until the calls have returned.
final class LateCalls: Sendable {
    fileprivate struct State {
        /// The number of channels with such calls.
        var count = 0
        var waiting: [@Sendable () -> Void] = []
        var hasEnded = false
    }

    private let state = Mutex(State())

    /// Records that there are such calls on another channel.
    func begin() { state.withLock { $0.count += 1 } }

    /// Records that the calls on a channel have returned.
    func end() {
        run(
            state.withLock { state in
                state.count -= 1
                return state.count == 0 ? state.takeWaiting() : []
            })
    }

    /// Records the end of the process.
    func endAll() {
        run(
            state.withLock { state in
                state.hasEnded = true
                return state.takeWaiting()
            })
    }

    /// Whether there are such calls, in a process that has not ended.
    var areRunning: Bool { state.withLock { $0.count > 0 && !$0.hasEnded } }

    /// Calls `body` on this thread, or on another one as soon as there are no such calls.
    func whenOver(_ body: @escaping @Sendable () -> Void) {
        let isOver = state.withLock { state in
            guard state.count > 0, !state.hasEnded else { return true }
            state.waiting.append(body)
            return false
        }
        if isOver { body() }
    }

    private func run(_ waiting: [@Sendable () -> Void]) {
        for body in waiting { ThreadPool.shared.run(body) }
    }
}

extension LateCalls.State {
    fileprivate mutating func takeWaiting() -> [@Sendable () -> Void] {
        defer { waiting = [] }
        return waiting
    }
}
