import Synchronization

/// How long the calls by HTTP took, by action, so that the page can show how long the last ones took.
final class CallTimes: Sendable {
    struct Sum: Sendable {
        var calls = 0
        var milliseconds = 0.0
    }

    /// How many actions are counted.
    static let limit = 5000

    private let sums = Mutex<[String: Sum]>([:])

    /// - Parameter action: Target and action.
    func add(_ action: String, _ duration: Duration) {
        sums.withLock { sums in
            guard sums.count < Self.limit || sums[action] != nil else { return }
            sums[action, default: Sum()].calls += 1
            sums[action, default: Sum()].milliseconds += duration / .milliseconds(1)
        }
    }

    var all: [String: Sum] { sums.withLock { $0 } }
}
