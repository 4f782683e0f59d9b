internal import Dispatch
internal import Glibc
internal import PluginABI

/// Tells when something changes in plugins folders: a file was written and closed, renamed, removed; a folder vanished,
/// or is there again.
///
/// It only says where to look. Changes that come together are told once. Links, which lead to files elsewhere, are
/// looked at once a second; so is everything in folders that the kernel cannot watch (its limit is reached), and
/// ``problem`` says so.
///
/// Everything mutable is touched on `queue` only, hence `@unchecked Sendable`.
final class FolderWatcher: @unchecked Sendable {
    /// What is known about one folder.
    private struct Folder {
        /// The kernel's number for it; -1 while it is not watched.
        var watch: Int32 = -1
        /// Nil while there is no folder.
        var identity: Identity?
        /// What was in it when it was last looked at, as far as it is not watched.
        var files: [String: FileIdentity?] = [:]
    }

    private struct Identity: Equatable {
        let device: dev_t
        let inode: ino_t
    }

    private let queue = DispatchQueue(label: "pluginhost.folder-watcher")
    private static let isOnQueue = DispatchSpecificKey<ObjectIdentifier>()
    private let onChange: @Sendable (Set<String>) -> Void
    private var folders: [String: Folder]
    private var descriptor: Int32 = -1
    private var events: (any DispatchSourceRead)?
    private var timer: (any DispatchSourceTimer)?
    private var isRunning = false
    private var currentProblem: PluginError?

    /// - Parameters:
    ///   - folders: They need not exist.
    ///   - onChange: Called with the folders, as they were named, in which something has changed; on a queue of the
    ///     watcher's own, one call at a time.
    init(folders: [String], onChange: @escaping @Sendable (_ folders: Set<String>) -> Void) {
        self.folders = Dictionary(folders.map { ($0, Folder()) }, uniquingKeysWith: { first, _ in first })
        self.onChange = onChange
        queue.setSpecific(key: Self.isOnQueue, value: ObjectIdentifier(self))
    }

    deinit { endWatching() }

    /// Begins to watch. What changes after it returns is told; what is there already is not.
    func start() { onQueue { beginWatching() } }

    /// Ends watching, and waits for a running callback, unless it is called from that.
    func stop() { onQueue { endWatching() } }

    /// Why folders are looked at once a second instead of being watched; nil if they are watched.
    var problem: PluginError? { onQueue { currentProblem } }

    private func onQueue<Result>(_ body: () -> Result) -> Result {
        DispatchQueue.getSpecific(key: Self.isOnQueue) == ObjectIdentifier(self) ? body() : queue.sync(execute: body)
    }

    private func beginWatching() {
        guard !isRunning else { return }
        isRunning = true
        descriptor = inotify_init1(Int32(IN_NONBLOCK | IN_CLOEXEC))
        if descriptor < 0 {
            note("inotify_init1", errno)
        } else {
            let source = DispatchSource.makeReadSource(fileDescriptor: descriptor, queue: queue)
            source.setEventHandler { [weak self] in self?.report { $0.drain() } }
            let closing = descriptor
            source.setCancelHandler { close(closing) }
            source.activate()
            events = source
        }
        _ = look()
        let timer = DispatchSource.makeTimerSource(queue: queue)
        timer.schedule(deadline: .now() + 1, repeating: 1, leeway: .milliseconds(250))
        timer.setEventHandler { [weak self] in self?.report { $0.look() } }
        timer.activate()
        self.timer = timer
    }

    private func endWatching() {
        isRunning = false
        events?.cancel()
        timer?.cancel()
        (events, timer, descriptor) = (nil, nil, -1)
        for path in folders.keys { folders[path] = Folder() }
    }

    private func report(_ changed: (FolderWatcher) -> Set<String>) {
        guard isRunning else { return }
        let changed = changed(self)
        if !changed.isEmpty { onChange(changed) }
    }

    private static let mask = UInt32(
        IN_CLOSE_WRITE | IN_MOVED_TO | IN_CREATE | IN_DELETE | IN_MOVED_FROM | IN_ATTRIB | IN_DELETE_SELF | IN_MOVE_SELF
            | IN_ONLYDIR)

    /// Reads all events that are queued. Returns the folders that they are about.
    private func drain() -> Set<String> {
        var changed: Set<String> = []
        withUnsafeTemporaryAllocation(byteCount: 65536, alignment: 8) { buffer in
            while true {
                let count = read(descriptor, buffer.baseAddress, buffer.count)
                guard count > 0 else { return }
                var offset = 0
                while offset < count {
                    // Sound: the kernel writes whole events, and says how long the name behind each one is.
                    let event = buffer.loadUnaligned(fromByteOffset: offset, as: inotify_event.self)
                    let start = offset + MemoryLayout<inotify_event>.size
                    let name = buffer[start..<start + Int(event.len)].prefix { $0 != 0 }
                    handle(event, name: String(decoding: name, as: UTF8.self), &changed)
                    offset = start + Int(event.len)
                }
            }
        }
        return changed
    }

    private func handle(_ event: inotify_event, name: String, _ changed: inout Set<String>) {
        if event.mask & UInt32(IN_Q_OVERFLOW) != 0 {
            changed.formUnion(folders.keys)
            return
        }
        for (path, folder) in folders where folder.watch == event.wd {
            if event.mask & UInt32(IN_DELETE_SELF | IN_MOVE_SELF | IN_IGNORED | IN_UNMOUNT) != 0 {
                // The folder at that path is another one now, or none.
                inotify_rm_watch(descriptor, folder.watch)
                folders[path] = Folder()
                _ = look(at: path)
                changed.insert(path)
            } else if name.isEmpty || PluginFolder.isCandidate(name) {
                changed.insert(path)
            }
        }
    }

    /// Looks at each folder: whether it is there, and still the same one.
    private func look() -> Set<String> { Set(folders.keys.filter(look)) }

    /// Returns whether something changed.
    private func look(at path: String) -> Bool {
        var status = stat()
        let isFolder = stat(path, &status) == 0 && status.st_mode & S_IFMT == S_IFDIR
        let identity = isFolder ? Identity(device: status.st_dev, inode: status.st_ino) : nil
        var folder = folders[path] ?? Folder()
        let isOther = identity != folder.identity
        if isOther {
            if folder.watch >= 0, !folders.contains(where: { $0.key != path && $0.value.watch == folder.watch }) {
                inotify_rm_watch(descriptor, folder.watch)
            }
            folder = Folder(identity: identity)
            if isFolder, descriptor >= 0 {
                folder.watch = inotify_add_watch(descriptor, path, Self.mask)
                if folder.watch < 0 { note(path, errno) }
            }
        }
        let files = isFolder ? Self.files(in: path, onlyLinks: folder.watch >= 0) : [:]
        let hasOtherFiles = files != folder.files
        folder.files = files
        folders[path] = folder
        return isOther || hasOtherFiles
    }

    private static func files(in path: String, onlyLinks: Bool) -> [String: FileIdentity?] {
        let entries = (try? PluginFolder.list(path, onlyLinks: onlyLinks)) ?? []
        return Dictionary(entries.map { ($0.name, try? $0.identity.get()) }, uniquingKeysWith: { $1 })
    }

    private func note(_ what: String, _ code: Int32) {
        guard code != ENOENT, code != ENOTDIR else { return }
        let advice = code == ENOSPC || code == EMFILE ? " Raise fs.inotify.max_user_watches or max_user_instances." : ""
        currentProblem = PluginError(
            .unreadable,
            "\(what) cannot be watched and is looked at once a second: \(describe(errno: code)).\(advice)")
    }
}
