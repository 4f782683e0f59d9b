import Synchronization

/// The reader of a sequence of changes. At most ``limit`` changes wait for it; later ones are counted, and the reader
/// gets their number after the changes before them.
final class ChangeObserver: Sendable {
    /// The number of changes that may wait to be read.
    static let limit = 1000

    private struct State {
        /// The changes to be read, from ``next`` on.
        var changes: [HostChange] = []
        var next = 0
        /// How many changes were dropped since the last one in ``changes``.
        var missed = 0
        /// The reads that wait for a change; a reader has several only if tasks share it.
        var waiting: [CheckedContinuation<HostChange?, Never>] = []
        var isFinished = false
        var onTermination: (@Sendable () -> Void)?

        /// Takes the next change. Returns `nil` if there is none.
        mutating func take() -> HostChange? {
            guard next < changes.count else {
                guard missed > 0 else { return nil }
                defer { missed = 0 }
                return .missed(missed)
            }
            defer {
                next += 1
                if next == changes.count || next >= ChangeObserver.limit {
                    changes.removeFirst(next)
                    next = 0
                }
            }
            return changes[next]
        }

        mutating func add(_ change: HostChange) {
            if changes.count - next < ChangeObserver.limit, missed > 0 {
                changes.append(.missed(missed))
                missed = 0
            }
            if changes.count - next < ChangeObserver.limit { changes.append(change) } else { missed += 1 }
        }
    }

    /// Ends the observer when the stream is released.
    private final class Lifetime: Sendable {
        let observer: ChangeObserver

        init(_ observer: ChangeObserver) { self.observer = observer }

        deinit { observer.end() }
    }

    private let state = Mutex(State())

    private init() {}

    static func make() -> (AsyncStream<HostChange>, ChangeObserver) {
        let observer = ChangeObserver()
        let lifetime = Lifetime(observer)
        let stream = AsyncStream(unfolding: { await lifetime.observer.read() }, onCancel: { observer.end() })
        return (stream, observer)
    }

    /// Calls a function once, when the stream has ended or can no longer be read.
    func onTermination(_ body: @escaping @Sendable () -> Void) { state.withLock { $0.onTermination = body } }

    func tell(_ change: HostChange) {
        let reader = state.withLock { state in
            guard !state.isFinished else { return nil as CheckedContinuation<HostChange?, Never>? }
            guard state.waiting.isEmpty else { return state.waiting.removeFirst() }
            state.add(change)
            return nil
        }
        reader?.resume(returning: change)
    }

    /// Ends the stream after the changes so far.
    func finish() {
        let (readers, onTermination) = state.withLock { state in
            defer { (state.waiting, state.onTermination, state.isFinished) = ([], nil, true) }
            return (state.waiting, state.onTermination)
        }
        for reader in readers { reader.resume(returning: nil) }
        onTermination?()
    }

    /// Ends the stream immediately.
    private func end() {
        state.withLock { ($0.changes, $0.next, $0.missed) = ([], 0, 0) }
        finish()
    }

    private func read() async -> HostChange? {
        await withCheckedContinuation { reader in
            let outcome: HostChange?? = state.withLock { state in
                if let change = state.take() { return .some(change) }
                guard !state.isFinished else { return .some(nil) }
                state.waiting.append(reader)
                return nil
            }
            if let outcome { reader.resume(returning: outcome) }
        }
    }
}
