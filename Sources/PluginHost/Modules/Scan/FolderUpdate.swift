import Glibc
import PluginABI
import PluginFile

/// One update after changes in plugins folders: scans the folders, reconciles what serves, and schedules retries of
/// what failed.
struct FolderUpdate {
    let context: ChangeContext
    /// Whether operations that failed for lack of a resource are tried again.
    private let retriesFailures: Bool

    init(_ context: ChangeContext, retryingFailures retriesFailures: Bool = false) {
        (self.context, self.retriesFailures) = (context, retriesFailures)
    }

    /// Scans folders as a whole.
    func run(_ folders: Set<String>) { run(ChangedFiles(in: folders)) }

    func run(_ changes: ChangedFiles) {
        guard !context.isStopped else { return }
        let scan = FolderScan(context: context, retriesFailures: retriesFailures)
        for folder in context.configuration.folders {
            if let files = changes.files[folder] { scan.look(into: folder, at: files) }
        }
        var reconciler = Reconciler(context)
        reconciler.reconcile()
        if retriesFailures { VersionRetention(context: context).keepAgain() }
        FileScan(context: context).releaseTried()
        DeclarationScan(context: context).reconcile()
        tellFailures()
        context.tellOwnProblems()
        lookAgain()
        retryLater()
        context.publish()
        context.recordKnownLater()
        context.holdFilesLater()
        context.prepareForChanges()
    }

    // MARK: Failures

    /// Marks files that are libraries of modules, and reports files that failed.
    func tellFailures() {
        markLibraries()
        for record in context.folders.takeFailures() {
            let status = record.status(nil)
            context.tell(.failed(status, goingOn: goingOn(instead: record)))
            context.announcements.announce("module.failed") { [calls = context.calls] in calls.postFailed(status) }
        }
    }

    /// Marks files that are not modules, but libraries that modules found next to themselves. Files are compared by
    /// identity, since there are many paths to one file: the folder may be given as `./plugins`, and a library may be
    /// found through a link.
    private func markLibraries() {
        var failed: [FileNumber: [FileRecord]] = [:]
        for record in context.folders.unsettledRecords where record.isNoModule {
            if let identity = record.identity { failed[FileNumber(identity), default: []].append(record) }
        }
        guard !failed.isEmpty else { return }
        var seen: Set<PathKey> = []
        let owners = context.folders.records.values.compactMap(\.ownerOfLibraries)
        for owner in owners.sorted(by: { ($0.isInOrder ? 0 : 1, $0.file) < ($1.isInOrder ? 0 : 1, $1.file) }) {
            for library in owner.libraries where seen.insert(library) {
                guard let identity = FileIdentity(path: library) else { continue }
                for record in failed.removeValue(forKey: FileNumber(identity)) ?? [] {
                    context.folders.put(record.with(.library(of: owner.name)))
                }
            }
        }
    }

    /// The identity of a file, whatever its content.
    private struct FileNumber: Hashable {
        let device: UInt64
        let inode: UInt64

        init(_ identity: FileIdentity) { (device, inode) = (identity.device, identity.inode) }
    }

    /// Returns the module that continues to serve although new content of its file failed.
    private func goingOn(instead record: FileRecord) -> String? {
        context.serving.modules.values.first { served in
            served.path.hasBytes(of: record.path) || served.name == record.claimedModule?.outline.name
        }.map { "\($0.name) \($0.version)" }
    }

    // MARK: Retries

    /// Schedules another scan of folders with files that are being written. The watcher does not notice the closing of
    /// a file that was written through a name in another folder.
    private func lookAgain() {
        let folders = context.folders.awaitedFolders
        guard context.configuration.watches, !folders.isEmpty, !context.folders.retries.isLookScheduled else { return }
        context.folders.retries.isLookScheduled = true
        context.later(after: .milliseconds(200)) { context in
            context.folders.retries.isLookScheduled = false
            FolderUpdate(context).run(folders)
        }
    }

    /// Schedules retries of what failed for lack of a resource (disk space, descriptors, memory), until what serves
    /// matches the folders.
    func retryLater() {
        guard context.configuration.watches else { return }
        let folders = context.configuration.folders.filter { folder in
            context.folders.canPass(in: folder)
                || context.drains.unkept.contains { $0.path.beginsWithBytes(of: folder) }
        }
        guard !folders.isEmpty else {
            context.folders.retries.delay = FolderContents.Retries.firstDelay
            return
        }
        guard !context.folders.retries.isScheduled else { return }
        context.folders.retries.isScheduled = true
        context.later(after: context.folders.retries.delay) { context in
            context.folders.retries.isScheduled = false
            FolderUpdate(context, retryingFailures: true).run(Set(folders))
        }
        context.folders.retries.delay = min(context.folders.retries.delay * 2, FolderContents.Retries.lastDelay)
    }
}

extension PluginError {
    /// Whether the operation may succeed later although the file does not change: the system lacked a resource.
    ///
    /// Recognised by the text of the `errno` value in the message, since the dynamic linker reports nothing else.
    var canPass: Bool {
        guard [.stagingFailed, .unreadable, .openFailed, .outOfResources].contains(code) else { return false }
        return Self.passing.contains { message.contains($0) }
    }

    private static let passing = [ENOSPC, EDQUOT, EMFILE, ENFILE, ENOMEM, EAGAIN, EIO].map { describe(errno: $0) }
}

extension FileRecord {
    /// Whether the content of the file is not that of a module.
    fileprivate var isNoModule: Bool {
        if case .failed(let error, _) = content { error.code == .invalidFile } else { false }
    }

    /// The libraries that the file finds beside itself, and the name of its module, or of the file if that is unknown;
    /// `nil` if the libraries are not known. A module that does not start has libraries, too.
    fileprivate var ownerOfLibraries: (file: String, name: String, libraries: [String], isInOrder: Bool)? {
        if case .quarantined(_, let libraries) = content {
            return (path, String(path.split(separator: "/").last ?? ""), libraries, false)
        }
        guard let module = claimedModule else { return nil }
        return (module.file, module.manifest.name, module.staged.libraries, self.module != nil)
    }

    /// Whether the file may be loaded later although it does not change.
    var canPass: Bool { if case .failed(let error, _) = content { error.canPass } else { false } }
}
