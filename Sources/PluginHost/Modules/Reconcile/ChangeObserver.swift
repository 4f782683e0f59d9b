import Synchronization

/// The reader of a sequence of changes. At most ``limit`` changes wait for it; later ones are counted, and the reader
/// gets their number when it has made room.
final class ChangeObserver: Sendable {
    /// The number of changes that may wait to be read.
    static let limit = 1000

    private let continuation: AsyncStream<HostChange>.Continuation
    /// How many changes were dropped since the last one that found room.
    private let missed = Mutex(0)

    private init(_ continuation: AsyncStream<HostChange>.Continuation) { self.continuation = continuation }

    static func make() -> (AsyncStream<HostChange>, ChangeObserver) {
        let (stream, continuation) = AsyncStream.makeStream(
            of: HostChange.self, bufferingPolicy: .bufferingOldest(limit))
        return (stream, ChangeObserver(continuation))
    }

    func onTermination(_ body: @escaping @Sendable () -> Void) { continuation.onTermination = { _ in body() } }

    func tell(_ change: HostChange) {
        missed.withLock { missed in
            if missed > 0 {
                guard case .enqueued = continuation.yield(.missed(missed)) else {
                    missed += 1
                    return
                }
                missed = 0
            }
            if case .dropped = continuation.yield(change) { missed = 1 }
        }
    }

    func finish() { continuation.finish() }
}
