import PluginABI
import PluginFile

/// What is in the folders, and linked into the program, as far as the host knows.
struct FolderContents: Sendable {
    /// By path.
    var records: [PathKey: FileRecord] = [:]
    /// Files of routes and services, by path.
    var declarations: [PathKey: DeclarationRecord] = [:]
    /// What is wrong with folders, by path, and with what the host keeps of them.
    var problems: [PathKey: PluginError] = [:]
    /// Paths of files that failed, to be told when everything has been looked at: they may be libraries that a module needs.
    private var failures: [String] = []
    /// Whether other modules are not served, or for other reasons, than the last table says.
    var hasNewAbsentees = false
    var suspects = Suspects.deferred([])
    /// Paths of files that may have killed the last host, and are being tried.
    var tried: Set<PathKey> = []
    var retries = Retries()

    /// Files that may have killed the last host.
    enum Suspects: Sendable {
        /// They are to be tried once more, after everything else.
        case deferred(Set<PathKey>)
        /// They are tried as soon as they are found.
        case tried
    }

    /// Looks at what may be different soon although nobody tells.
    struct Retries: Sendable {
        /// After how long a failure that may pass is tried again; each time twice as long, up to the last.
        static let firstDelay = Duration.milliseconds(250)
        static let lastDelay = Duration.seconds(30)

        var delay = firstDelay
        var isScheduled = false
        /// Whether files that are being written are looked at again soon.
        var isLookScheduled = false
    }

    mutating func put(_ record: FileRecord) { records[record.path] = record }

    /// Forgets files of a folder that are not there any more.
    ///
    /// - Parameter unread: Folders below it that could not be read, each with a slash at its end.
    mutating func forget(in folder: String, besides present: Set<PathKey>, unread: [String]) {
        let count = records.count
        records = records.filter { path, record in
            !record.folder.hasBytes(of: folder) || present.contains(path)
                || unread.contains { path.path.beginsWithBytes(of: $0) }
        }
        if records.count < count { hasNewAbsentees = true }
    }

    /// Notes why a file is not served.
    mutating func fail(_ record: FileRecord, _ error: PluginError, _ module: LoadedModule? = nil) {
        let known = records[record.path]
        put(record.with(.failed(error, module)))
        hasNewAbsentees = true
        // A new time or mode is worth a try; the same answer is not worth telling.
        if let known, case .failed(let before, _) = known.content, known.hasContent(of: record),
            before == error || before.canPass && error.canPass
        {
            return
        }
        tellLater(record)
    }

    mutating func tellLater(_ record: FileRecord) { failures.append(record.path) }

    /// Returns the files that have failed since this was called last.
    mutating func takeFailures() -> [FileRecord] {
        defer { failures = [] }
        return failures.compactMap { records[$0] }.filter(\.isFailure)
    }

    /// The folders in which somebody writes a file, so that it has to be looked at again.
    var awaitedFolders: Set<String> {
        Set(records.values.lazy.filter(\.isAwaited).map(\.folder)).union(
            declarations.values.lazy.filter(\.isAwaited).map(\.folder))
    }

    /// Whether something of a folder has failed for want of something that may come by itself.
    func canPass(in folder: String) -> Bool {
        problems[folder]?.canPass == true
            || records.values.contains { $0.canPass && $0.folder.hasBytes(of: folder) }
            || declarations.values.contains { $0.problem?.canPass == true && $0.folder.hasBytes(of: folder) }
    }
}
