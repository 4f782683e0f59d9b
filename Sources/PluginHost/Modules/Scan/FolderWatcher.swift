import CDispatch
import Glibc
import PluginABI
import PluginFile
import Synchronization

/// A watcher that reports changes in plugins folders: a file was written and closed, renamed or deleted; a folder
/// disappeared, reappeared, or became readable again.
///
/// It reports what to scan: files, or whole folders if anything in them may have changed, or if a file has disappeared
/// and may have been renamed unnoticed. Changes in quick succession are reported together: the watcher
/// waits until nothing has changed for a quiet time, but no longer than ``waitLimit``. Links, which lead to files
/// elsewhere, are checked once a second. So is everything in folders that the kernel cannot watch because its limit is
/// reached; ``problem`` describes that. A subfolder is watched before it is read, so that no change is missed in
/// between.
///
/// Mutable state is accessed only on `queue`, hence `@unchecked Sendable`.
final class FolderWatcher: @unchecked Sendable {
    /// The location of a folder: the plugins folder that contains it, and its own path.
    private struct Location: Hashable {
        let root: String
        let path: PathKey
    }

    /// The state of one folder.
    private struct Folder {
        let identity: FolderWalk.Identity
        /// The kernel's watch descriptor; -1 while the folder is not watched.
        var watch: Int32 = -1
        /// The files that were found by the last check: all of them if the folder is not watched, otherwise only links.
        /// `nil` if the folder cannot be read.
        var files: [PathKey: FileIdentity?]? = [:]
    }

    /// The longest time for which changes are collected.
    static let waitLimit = Duration.milliseconds(100)

    private let queue = SerialThread("host.watcher")
    private let roots: Set<String>
    private let includesSubfolders: Bool
    private let quietTime: Duration
    private let lookInterval: Duration
    private let onChange: @Sendable (ChangedFiles) -> Void

    private var folders: [Location: Folder] = [:]
    private var locations: [Int32: Set<Location>] = [:]
    private var descriptor: Int32 = -1
    private var isRunning = false
    /// How many times watching was started. A periodic check that an earlier start scheduled ends when it sees a
    /// different number.
    private var beginnings = 0
    /// The folders that the kernel does not watch, each with the reason.
    private let problems = Mutex<[String: PluginError]>([:])
    /// The changes that are not reported yet, the time of the first of these changes, and how many waits
    /// have begun since.
    private var gathered: (changes: ChangedFiles, since: ContinuousClock.Instant, waits: Int)?

    /// Creates a watcher. ``start()`` begins watching.
    ///
    /// - Parameters:
    ///   - folders: The folders to watch, which need not exist.
    ///   - includesSubfolders: Whether their subfolders are watched, too.
    ///   - quietTime: How long nothing must have changed before a change is reported; at most ``waitLimit``.
    ///   - lookInterval: How often to check what the kernel does not watch.
    ///   - onChange: Called with what has changed in `folders`, on the watcher's thread, one call at a time.
    init(
        folders: [String], includesSubfolders: Bool = false, quietTime: Duration = .milliseconds(5),
        lookInterval: Duration = .seconds(1), onChange: @escaping @Sendable (ChangedFiles) -> Void
    ) {
        (roots, self.includesSubfolders) = (Set(folders), includesSubfolders)
        self.quietTime = min(max(quietTime, .zero), Self.waitLimit)
        (self.lookInterval, self.onChange) = (lookInterval, onChange)
    }

    deinit { endWatching() }

    /// Starts watching. Changes after this function returns are reported; files that already exist are not.
    func start() { onQueue { beginWatching() } }

    /// Stops watching, and waits for a running callback unless it is called from the callback.
    func stop() { onQueue { endWatching() } }

    /// The reason why folders are checked once a second instead of being watched; `nil` if they are watched.
    var problem: PluginError? { problems.withLock { problems in problems.min { $0.key < $1.key }?.value } }

    /// Whether the watcher's thread exists, for tests.
    var hasThread: Bool { queue.hasThread }

    private func onQueue<Result>(_ body: () -> Result) -> Result {
        queue.isCurrent ? body() : queue.sync(body)
    }

    private func beginWatching() {
        guard !isRunning else { return }
        isRunning = true
        beginnings += 1
        queue.retainThread()
        openDescriptor()
        for root in roots { _ = look(at: root) }
        lookLater(beginnings)
    }

    /// Opens the descriptor from which the kernel's change events are read, unless it is already open. This can fail
    /// for lack of descriptors and is retried with each periodic check.
    private func openDescriptor() {
        guard descriptor < 0 else { return }
        let new = inotify_init1(Int32(IN_NONBLOCK | IN_CLOEXEC))
        guard new >= 0 else { return note(Self.everything, errno) }
        let code = queue.watch(new) { [weak self] in self?.takeEvents() }
        guard code == 0 else {
            close(new)
            return note(Self.everything, code)
        }
        descriptor = new
        problems.withLock { $0[Self.everything] = nil }
    }

    private static let everything = "The content of the plugins folders"

    private func lookLater(_ beginning: Int) {
        queue.async(after: lookInterval) { [weak self] in
            guard let self, isRunning, beginnings == beginning else { return }
            takeLook()
            lookLater(beginning)
        }
    }

    private func endWatching() {
        guard isRunning else { return }
        isRunning = false
        queue.unwatch()
        if descriptor >= 0 { close(descriptor) }
        descriptor = -1
        queue.releaseThread()
        (folders, locations, gathered) = ([:], [:], nil)
        problems.withLock { $0 = [:] }
    }

    // MARK: Reporting

    private func takeEvents() { if isRunning { gather(drain()) } }

    private func takeLook() {
        guard isRunning else { return }
        openDescriptor()
        gather(ChangedFiles(in: roots.filter(look)))
    }

    /// Adds changes to the unreported ones, which are reported when no change follows within the quiet time.
    private func gather(_ changed: ChangedFiles) {
        guard !changed.isEmpty else { return }
        let now = ContinuousClock.now
        var current = gathered ?? (changes: ChangedFiles(), since: now, waits: 0)
        current.changes.add(changed)
        current.waits += 1
        gathered = current
        let wait = min(quietTime, Self.waitLimit - (now - current.since))
        guard wait > .zero else { return tell() }
        let (since, number) = (current.since, current.waits)
        queue.async(after: wait) { [weak self] in
            // A later change has begun a wait of its own.
            guard let self, isRunning, gathered?.since == since, gathered?.waits == number else { return }
            tell()
        }
    }

    private func tell() {
        guard let changes = gathered?.changes else { return }
        gathered = nil
        onChange(changes)
    }

    /// Returns what has changed since the last report. Must be called on the watcher's thread, by ``onChange``.
    func takePending() -> ChangedFiles {
        guard isRunning else { return ChangedFiles() }
        var changes = drain()
        if let gathered { changes.add(gathered.changes) }
        gathered = nil
        return changes
    }

    // MARK: Events

    private static let mask = UInt32(
        IN_CLOSE_WRITE | IN_MOVED_TO | IN_CREATE | IN_DELETE | IN_MOVED_FROM | IN_ATTRIB | IN_DELETE_SELF | IN_MOVE_SELF
            | IN_ONLYDIR)

    /// Reads all queued events. Returns the changes that they report.
    private func drain() -> ChangedFiles {
        var changed = ChangedFiles()
        var unknown: Set<String> = []
        withUnsafeTemporaryAllocation(byteCount: 65536, alignment: 8) { buffer in
            while true {
                let count = read(descriptor, buffer.baseAddress, buffer.count)
                guard count > 0 else { return }
                var offset = 0
                while offset < count {
                    // Sound: the kernel writes whole events, each with the length of the name that follows it.
                    let event = buffer.loadUnaligned(fromByteOffset: offset, as: inotify_event.self)
                    let start = offset + MemoryLayout<inotify_event>.size
                    let bytes = buffer[start..<start + Int(event.len)].prefix { $0 != 0 }
                    let name = String(decoding: bytes, as: UTF8.self)
                    handle(event, name: name, isExact: name.utf8.elementsEqual(bytes), &changed, &unknown)
                    offset = start + Int(event.len)
                }
            }
        }
        for root in unknown { _ = look(at: root) }
        changed.add(ChangedFiles(in: unknown))
        return changed
    }

    /// Handles one event.
    ///
    /// - Parameters:
    ///   - isExact: Whether the name is valid UTF-8.
    ///   - changed: Receives what has changed in the plugins folders.
    ///   - unknown: Receives the plugins folders whose subfolders may have changed.
    private func handle(
        _ event: inotify_event, name: String, isExact: Bool, _ changed: inout ChangedFiles,
        _ unknown: inout Set<String>
    ) {
        if event.mask & UInt32(IN_Q_OVERFLOW) != 0 { unknown = roots }
        for location in locations[event.wd] ?? [] {
            if event.mask & UInt32(IN_DELETE_SELF | IN_MOVE_SELF | IN_IGNORED | IN_UNMOUNT) != 0 {
                // The path now leads to another folder or to none.
                forget(location)
                unknown.insert(location.root)
                continue
            }
            if name.isEmpty || !isExact {
                changed.add(folder: location.root)
            } else if PluginFolder.isCandidate(name) {
                let path = location.path.path.pathOfItem(name)
                changed.add(file: path, in: location.root)
                // The file may have another name: the new one of a rename is reported by another event, which may
                // follow in the next report.
                if event.mask & UInt32(IN_MOVED_FROM) != 0 || event.mask & UInt32(IN_DELETE) != 0 && !seesEverything {
                    changed.add(folder: location.root)
                }
                if event.mask & UInt32(IN_CREATE | IN_MOVED_TO) != 0, PluginFolder.isLink(path) {
                    unknown.insert(location.root)
                }
            }
            guard includesSubfolders, !name.isEmpty, !name.hasPrefix(".") else { continue }
            let path = "\(location.path.path)/\(name)"
            if event.mask & UInt32(IN_ISDIR) != 0 || folders[Location(root: location.root, path: PathKey(path))] != nil
                || PluginFolder.isLink(path)
            {
                unknown.insert(location.root)
            }
        }
    }

    /// Whether the kernel reports all changes: every folder is watched, and there are no links.
    private var seesEverything: Bool { folders.values.allSatisfy { $0.watch >= 0 && $0.files?.isEmpty == true } }

    // MARK: Checking

    /// Checks whether a plugins folder and its subfolders exist and are still the same. Returns whether something has
    /// changed.
    private func look(at root: String) -> Bool {
        var walk = FolderWalk(root, includesSubfolders: includesSubfolders)
        var present: Set<Location> = []
        var hasChanged = false
        while let found = walk.next() {
            let location = Location(root: root, path: PathKey(found.path))
            present.insert(location)
            if folders[location]?.identity != found.identity {
                forget(location)
                hasChanged = true
            }
            var folder = folders[location] ?? Folder(identity: found.identity)
            if folder.watch < 0, descriptor >= 0 {
                folder.watch = watch(location)
                // What has happened since the last check is not reported otherwise.
                if folder.watch >= 0 { hasChanged = true }
            }
            let items = try? walk.read(found)
            let files = items.map { identities(of: $0, onlyLinks: folder.watch >= 0) }
            hasChanged = hasChanged || files != folder.files
            folder.files = files
            folders[location] = folder
        }
        for location in folders.keys where location.root == root && !present.contains(location) {
            forget(location)
            hasChanged = true
        }
        return hasChanged
    }

    private func identities(of items: [FolderWalk.Item], onlyLinks: Bool) -> [PathKey: FileIdentity?] {
        let items = items.filter { $0.isCandidate && (!onlyLinks || $0.canBeLink) }
        return Dictionary(
            items.map { (PathKey($0.name), try? PluginFolder.examine($0.path).get()) }, uniquingKeysWith: { $1 })
    }

    private func watch(_ location: Location) -> Int32 {
        let watch = inotify_add_watch(descriptor, location.path.path, Self.mask)
        if watch < 0 {
            note(location.path.path, errno)
        } else {
            problems.withLock { $0[location.path.path] = nil }
            locations[watch, default: []].insert(location)
        }
        return watch
    }

    private func forget(_ location: Location) {
        guard let folder = folders.removeValue(forKey: location) else { return }
        problems.withLock { $0[location.path.path] = nil }
        guard folder.watch >= 0 else { return }
        locations[folder.watch]?.remove(location)
        if locations[folder.watch]?.isEmpty == true {
            locations[folder.watch] = nil
            inotify_rm_watch(descriptor, folder.watch)
        }
    }

    private func note(_ what: String, _ code: Int32) {
        guard code != ENOENT, code != ENOTDIR else { return }
        let advice = code == ENOSPC || code == EMFILE ? " Raise fs.inotify.max_user_watches or max_user_instances." : ""
        let problem = PluginError(
            .unreadable,
            "\(what) cannot be watched and is checked once a second until it can: \(describe(errno: code)).\(advice)")
        problems.withLock { $0[what] = problem }
    }
}
