import Synchronization

/// The changes that a folder watcher has reported.
final class WatcherChanges: Sendable {
    private let told = Mutex<[Set<String>]>([])

    func add(_ changed: Set<String>) { told.withLock { $0.append(changed) } }
    func forget() { told.withLock { $0 = [] } }
    func contain(_ folder: String) -> Bool { told.withLock { $0.contains { $0.contains(folder) } } }

    /// The number of reports.
    var count: Int { told.withLock { $0.count } }
    var isEmpty: Bool { count == 0 }
}
