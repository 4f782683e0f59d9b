import PluginABI
import PluginFile

/// The content of the plugins folders and the modules linked into the program, as known to the host.
struct FolderContents: Sendable {
    /// The records of files, by path.
    private(set) var records = Records()
    /// The paths of the files that do not contain a module, or one that was judged and neither serves nor is superseded.
    private(set) var unsettled: Set<PathKey> = []
    /// The paths of the files whose modules have changed since they were planned; incomplete if ``areAllUnplanned``.
    private(set) var unplanned: Set<PathKey> = []
    /// Whether more than half of the files are new, so that all modules must be planned.
    private(set) var areAllUnplanned = false
    /// The records that have been added since there were none, in the order in which they were added; `nil` if there
    /// have been other changes.
    private var added: [FileRecord]?
    /// The records of route files and service files, by path.
    var declarations: [PathKey: DeclarationRecord] = [:]
    /// The problems of folders and of the data that the host keeps about them, by path.
    var problems: [PathKey: PluginError] = [:]
    /// The paths of files that failed. They are reported after the whole scan, since they may turn out to be libraries
    /// that a module needs.
    private var failures: [String] = []
    /// Whether the unavailable modules, or the reasons why they are unavailable, have changed since the last published
    /// table.
    var hasNewAbsentees = false
    var suspects = Suspects.deferred([])
    /// The paths of files that may have killed the last host, and are being tried.
    var tried: Set<PathKey> = []
    var retries = Retries()

    typealias Records = BucketMap<PathKey, FileRecord>

    /// The files that may have killed the last host.
    enum Suspects: Sendable {
        /// The files are tried once more, after all others.
        case deferred(Set<PathKey>)
        /// The files are tried as soon as they are found.
        case tried
    }

    /// The scheduled scans for changes that the watcher does not report.
    struct Retries: Sendable {
        /// The delay before the first retry of a failure that may pass. It doubles with each retry, up to
        /// ``lastDelay``.
        static let firstDelay = Duration.milliseconds(250)
        static let lastDelay = Duration.seconds(30)

        var delay = firstDelay
        var isScheduled = false
        /// Whether another scan of files that are being written is scheduled.
        var isLookScheduled = false
    }

    /// The records of the files in ``unsettled``.
    var unsettledRecords: some Sequence<FileRecord> { unsettled.lazy.compactMap { records[$0] } }

    /// Whether there are files whose modules have changed since they were planned.
    var hasUnplanned: Bool { areAllUnplanned || !unplanned.isEmpty }

    /// All records in the order in which they were added, if nothing else has happened since there were none; otherwise
    /// `nil`.
    var newRecords: [FileRecord]? { added?.count == records.count ? added : nil }

    /// Prepares for the records of a folder with this many files.
    mutating func reserveCapacity(_ count: Int) {
        if records.isEmpty {
            added = []
            added?.reserveCapacity(count)
        }
        guard count > max(records.count * 2, 64) else { return }
        records.reserveCapacity(adding: count - records.count)
        areAllUnplanned = true
    }

    mutating func put(_ record: FileRecord) {
        added?.append(record)
        if !areAllUnplanned { unplanned.insert(record.path) }
        set(record)
    }

    /// Replaces a record with one that has another verdict.
    mutating func judge(_ record: FileRecord) {
        added = nil
        set(record)
    }

    private mutating func set(_ record: FileRecord) {
        records[record.path] = record
        if record.isUnsettled {
            unsettled.insert(record.path)
        } else if !unsettled.isEmpty {
            unsettled.remove(PathKey(record.path))
        }
    }

    mutating func remove(_ path: String) {
        let path = PathKey(path)
        guard records.removeValue(forKey: path) != nil else { return }
        unsettled.remove(path)
        unplanned.insert(path)
        added = nil
        hasNewAbsentees = true
    }

    /// Returns ``unplanned``, and empties it.
    mutating func takeUnplanned() -> Set<PathKey> {
        defer { (unplanned, areAllUnplanned, added) = ([], false, nil) }
        return unplanned
    }

    /// Removes the records of files that a folder no longer contains.
    ///
    /// - Parameter unread: The subfolders that could not be read, each with a slash at its end.
    mutating func forget(in folder: String, besides present: Set<PathKey>, unread: [String]) {
        let gone = records.compactMap { path, record in
            record.folder.hasBytes(of: folder) && !present.contains(path)
                && !unread.contains { path.path.beginsWithBytes(of: $0) } ? path : nil
        }
        for path in gone { remove(path.path) }
    }

    /// Records why a file is not served.
    mutating func fail(_ record: FileRecord, _ error: PluginError, _ module: LoadedModule? = nil) {
        let known = records[record.path]
        put(record.with(.failed(error, module)))
        hasNewAbsentees = true
        // A new time or mode justifies another try, but the same error is not reported again.
        if let known, case .failed(let before, _) = known.content, known.hasContent(of: record),
            before == error || before.canPass && error.canPass
        {
            return
        }
        tellLater(record)
    }

    mutating func tellLater(_ record: FileRecord) { failures.append(record.path) }

    /// Returns the files that have failed since the last call.
    mutating func takeFailures() -> [FileRecord] {
        defer { failures = [] }
        return failures.compactMap { records[$0] }.filter(\.isFailure)
    }

    /// The folders with files that are being written and must be scanned again.
    var awaitedFolders: Set<String> {
        Set(unsettledRecords.lazy.filter(\.isAwaited).map(\.folder)).union(
            declarations.values.lazy.filter(\.isAwaited).map(\.folder))
    }

    /// Returns whether something in a folder has failed for lack of a resource that may become available.
    func canPass(in folder: String) -> Bool {
        problems[folder]?.canPass == true
            || unsettledRecords.contains { $0.canPass && $0.folder.hasBytes(of: folder) }
            || declarations.values.contains { $0.problem?.canPass == true && $0.folder.hasBytes(of: folder) }
    }
}
