import Synchronization

/// The log lines and changes that the host of a bench has reported so far.
final class BenchRecords: Sendable {
    private let entries = Mutex<[LogEntry]>([])
    private let told = Mutex<[HostChange]>([])

    var log: [LogEntry] { entries.withLock { $0 } }
    var changes: [HostChange] { told.withLock { $0 } }

    func add(_ entry: LogEntry) { entries.withLock { $0.append(entry) } }

    /// Records the changes until the host is shut down.
    func follow(_ changes: AsyncStream<HostChange>) {
        Task { [self] in
            for await change in changes { told.withLock { $0.append(change) } }
        }
    }
}
