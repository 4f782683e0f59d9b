import Synchronization

/// Whether the calls of an action have been short lately.
final class CallPace: Sendable {
    /// How many more calls were short than were long, with a weight for the latter.
    private let score = Atomic(0)

    /// So many calls must have been short. A long call cancels out as many short ones.
    static let required = 64

    /// A call that takes longer is long. On a shared thread, there is more patience: a call may also take long because
    /// other programs run.
    static let limit = (own: Duration.microseconds(200), shared: Duration.milliseconds(1))

    /// After a call on a shared thread that takes longer, the action gets threads of its own for thousands of calls.
    static let utmost = Duration.milliseconds(50)

    /// Whether calls are short.
    var areShort: Bool { score.load(ordering: .relaxed) >= Self.required }

    /// Notes how long a call took.
    func add(_ duration: Duration, isShared: Bool) {
        if duration <= (isShared ? Self.limit.shared : Self.limit.own) {
            _ = score.increment(upTo: 2 * Self.required)
        } else if isShared, duration > Self.utmost {
            exclude()
        } else if areShort {
            score.subtract(Self.required, ordering: .relaxed)
        } else {
            _ = score.min(0, ordering: .relaxed)
        }
    }

    /// Notes that a call hangs.
    func exclude() { score.store(-100 * Self.required, ordering: .relaxed) }
}
