import PluginABI
import PluginFile
import Synchronization

/// What changes of modules work with, and the state that they own: what is in the folders, what serves, what drains.
///
/// Everything mutable is touched by work of ``queue`` only, hence `@unchecked Sendable`. Other threads read what was
/// published last.
final class ChangeContext: @unchecked Sendable {
    let core: HostCore
    let configuration: HostConfiguration
    /// Changes run here, one at a time.
    let queue = SerialThread("host.changes")
    let runner = HookRunner()
    let announcements: Announcements
    let memoryWatch: MemoryWatch

    /// Set by the start, before anything of a file or folder is touched.
    var disk: Disk!
    var isStopped = false
    var folders = FolderContents()
    var serving = Serving()
    var drains = Drains()
    /// What is wrong with the host's own.
    var ownProblems = OwnProblems()

    /// Tells when something changes in the folders; nil while nobody watches. Any thread may use it.
    let watcher = Mutex<FolderWatcher?>(nil)

    private let snapshot = Mutex(ModulesSnapshot())
    /// Why routes and services of files do not stand, by path, as far as it has been told. Any thread may change them.
    let toldDeclarationProblems = Mutex<[PathKey: PluginError]>([:])

    init(_ configuration: HostConfiguration, _ core: HostCore) {
        (self.configuration, self.core) = (configuration, core)
        announcements = Announcements(Calls(core), runner, hookTimeout: configuration.hookTimeout)
        memoryWatch = MemoryWatch(Calls(core))
    }

    var calls: Calls { Calls(core) }
    var registry: Registry { core.registry }
    var hooks: Hooks {
        Hooks(calls: calls, runner: runner, configuration: configuration, journal: disk?.journal)
    }

    // MARK: Who reads

    /// What other threads see.
    var published: ModulesSnapshot { snapshot.withLock { $0 } }

    /// Shows other threads the state as it is now.
    func publish() {
        let next = ModulesSnapshot(folders: folders, serving: serving, drains: drains, ownProblems: ownProblems)
        snapshot.withLock { $0 = next }
    }

    /// Tells observers of a change, which stands in what they can read by then.
    func tell(_ change: HostChange) {
        publish()
        announcements.tell(change)
    }

    // MARK: What is to be done

    /// Does something on the queue later, unless the host has ended by then. From any thread.
    func later(after delay: Duration = .zero, _ work: @escaping @Sendable (ChangeContext) -> Void) {
        let unlessEnded: @Sendable () -> Void = { [weak self] in
            if let self, !isStopped { work(self) }
        }
        if delay == .zero { queue.async(unlessEnded) } else { queue.async(after: delay, unlessEnded) }
    }

    /// Brings what serves into line with what is there, and tells what could not be started.
    ///
    /// - Returns: Why what the program registers does not serve.
    @discardableResult
    func reconcile(_ change: ProgramChange? = nil) -> PluginError? {
        var reconciler = Reconciler(self, change)
        defer { FolderUpdate(self).tellFailures() }
        return reconciler.reconcile()
    }

    /// What is to serve now, and what is not and why.
    ///
    /// - Parameter records: What the files would hold. Default: what they hold.
    func plan(_ change: ProgramChange? = nil, with records: [PathKey: FileRecord]? = nil) -> Plan {
        Plan(Array((records ?? folders.records).values), serving, change, registry.table.routes)
    }

    /// Reads all folders again, and does what has become necessary.
    func update() { FolderUpdate(self).run(Set(configuration.folders)) }
}
