import PluginABI
import Synchronization

/// The bytes of large answers that clients have not read yet, with a limit for all of them.
final class UnsentResults: Sendable {
    private let limit: Int
    private let bytes = Mutex(0)

    /// Smaller answers do not count: the number of connections bounds them.
    static let smallest = 65_536

    /// - Parameter limit: The largest number of bytes, unless there is only one answer.
    init(limit: Int) { self.limit = limit }

    /// The bytes of one answer, which count as long as this object exists.
    final class Share: Sendable {
        private let results: UnsentResults
        private let count: Int

        fileprivate init(_ results: UnsentResults, _ count: Int) { (self.results, self.count) = (results, count) }

        deinit { results.bytes.withLock { $0 -= count } }
    }

    /// Counts an answer; `nil` if it is small.
    func add(_ count: Int) throws(Problem) -> Share? {
        guard count > Self.smallest else { return nil }
        try bytes.withLock { (bytes) throws(Problem) in
            guard bytes == 0 || bytes + count <= limit else {
                throw Problem(
                    .overloaded,
                    "Clients have not read \(bytes) bytes of answers; \(limit) are the limit. If an action was called, "
                        + "its result is lost.", retryAfter: 10)
            }
            bytes += count
        }
        return Share(self, count)
    }

    var count: Int { bytes.withLock { $0 } }
}
