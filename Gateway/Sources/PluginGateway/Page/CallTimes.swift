import Synchronization

/// How long the calls by HTTP took, by action, so that the page can show how long the last ones took.
final class CallTimes: Sendable {
    struct Sum: Sendable {
        var calls = 0
        var milliseconds = 0.0
    }

    /// The sum of one action.
    final class Entry: Sendable {
        fileprivate let sum = Mutex(Sum())

        func add(_ nanoseconds: Int64) {
            sum.withLock { sum in
                sum.calls += 1
                sum.milliseconds += Double(nanoseconds) / 1e6
            }
        }
    }

    /// How many actions are counted.
    static let limit = 5000

    private let entries = Mutex<[String: Entry]>([:])

    /// Returns the sum of an action, to add to; `nil` if too many are counted.
    ///
    /// - Parameter action: Target and action.
    func entry(of action: String) -> Entry? {
        entries.withLock { entries in
            if let entry = entries[action] { return entry }
            guard entries.count < Self.limit else { return nil }
            let entry = Entry()
            entries[action] = entry
            return entry
        }
    }

    var all: [String: Sum] {
        entries.withLock { $0 }.mapValues { entry in entry.sum.withLock { $0 } }.filter { $0.value.calls > 0 }
    }
}
