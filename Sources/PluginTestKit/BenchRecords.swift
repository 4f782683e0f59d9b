import PluginABI
import PluginHost
import Synchronization

/// What the host of a bench has said so far.
final class BenchRecords: Sendable {
    private let entries = Mutex<[LogEntry]>([])
    private let told = Mutex<[HostChange]>([])

    var log: [LogEntry] { entries.withLock { $0 } }
    var changes: [HostChange] { told.withLock { $0 } }

    func add(_ entry: LogEntry) { entries.withLock { $0.append(entry) } }

    /// Takes what happens until the host ends.
    func follow(_ changes: AsyncStream<HostChange>) {
        Task { [self] in
            for await change in changes { told.withLock { $0.append(change) } }
        }
    }
}
