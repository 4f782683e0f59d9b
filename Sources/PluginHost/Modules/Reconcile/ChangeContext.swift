import PluginABI
import PluginFile
import Synchronization

/// The shared parts of changes of modules, and the state that changes own: the content of the folders, the modules that
/// serve, the generations that drain.
///
/// Mutable state is accessed only by work on ``queue``, hence `@unchecked Sendable`. Other threads read the snapshot
/// that was published last.
final class ChangeContext: @unchecked Sendable {
    let core: HostCore
    let configuration: HostConfiguration
    /// The queue on which changes run, one at a time.
    let queue = SerialThread("host.changes")
    /// The waits of the thread that changes modules.
    let waits: ChangeWaits
    let runner: HookRunner
    /// Threads that wait for hooks, so that a change does not have to.
    private let waiters: HookRunner
    let announcements: Announcements
    let memoryWatch: MemoryWatch
    /// The generations that are about to serve, while they are published. May be accessed from any thread.
    let upcoming = Mutex<[Generation]>([])
    /// The crashes of isolated modules. May be accessed from any thread.
    let crashes = Crashes()

    /// Set when the host is started, before files or folders are accessed.
    var disk: Disk!
    var isStopped = false
    /// Whether the host ends. May be accessed from any thread.
    let isEnding = Atomic<Bool>(false)
    var folders = FolderContents()
    var serving = Serving()
    var drains = Drains()
    var starts = ModuleStarts()
    /// The content of the table that is proposed to starting modules; `nil` if there is none.
    var proposed: Proposed?
    /// Whether what is known about files will be recorded.
    var isRecordScheduled = false
    /// How many modules were started while a change waited for code of a module.
    var nestedStarts = 0
    /// How many changes, each within the previous one, have not published what they start.
    var unpublished = 0
    /// Whether a change waits for hooks until they have returned or have exceeded their timeout.
    private(set) var isPatient = false
    /// How long the current change still waits for hooks.
    let patience = ChangePatience()
    /// The problems of the host itself.
    var ownProblems = OwnProblems()

    /// The watcher of the folders; `nil` while they are not watched. May be accessed from any thread.
    let watcher = Mutex<FolderWatcher?>(nil)

    private let snapshot = Mutex(ModulesSnapshot())
    /// The reported reasons why routes and services of files are not in effect, by path. May be accessed from any
    /// thread.
    let toldDeclarationProblems = Mutex<[PathKey: PluginError]>([:])

    init(_ configuration: HostConfiguration, _ core: HostCore) {
        (self.configuration, self.core) = (configuration, core)
        waits = ChangeWaits(queue)
        (runner, waiters) = (HookRunner(waits), HookRunner(waits))
        announcements = Announcements(Calls(core), runner, hookTimeout: configuration.hookTimeout)
        memoryWatch = MemoryWatch(Calls(core))
    }

    var calls: Calls { Calls(core) }
    var registry: Registry { core.registry }
    var hooks: Hooks {
        Hooks(
            calls: calls, runner: runner, waiters: waiters, configuration: configuration, journal: disk?.journal,
            isPatient: isPatient, changePatience: patience, waits: waits)
    }

    // MARK: Publishing

    /// The snapshot that other threads read.
    var published: ModulesSnapshot { snapshot.withLock { $0 } }

    /// Whether a generation serves, or is about to. May be called from any thread.
    func serves(_ generation: Generation) -> Bool {
        upcoming.withLock { $0.contains { $0 === generation } }
            || published.serving.modules[generation.name]?.generation === generation
    }

    /// Publishes the current state to other threads.
    func publish() {
        let next = ModulesSnapshot(
            folders: folders, serving: serving, drains: drains, starts: starts, ownProblems: ownProblems)
        snapshot.withLock { $0 = next }
    }

    /// Publishes the current state, then notifies observers of a change.
    func tell(_ change: HostChange) {
        publish()
        announcements.tell(change)
    }

    // MARK: Changes

    /// Runs work on the queue later, unless the host was shut down by then. May be called from any thread.
    func later(after delay: Duration = .zero, _ work: @escaping @Sendable (ChangeContext) -> Void) {
        let unlessEnded: @Sendable () -> Void = { [weak self] in
            if let self, !isStopped { work(self) }
        }
        if delay == .zero { queue.async(unlessEnded) } else { queue.async(after: delay, unlessEnded) }
    }

    /// Reconciles what serves, and reports modules that could not be started.
    ///
    /// - Returns: The reason why the module that the program registers does not serve; otherwise `nil`.
    @discardableResult
    func reconcile(_ change: ProgramChange? = nil) -> PluginError? {
        var reconciler = Reconciler(self, change)
        defer { FolderUpdate(self).tellFailures() }
        return reconciler.reconcile()
    }

    /// Makes a change that waits for hooks until they have returned or have exceeded their timeout, since its outcome
    /// is needed.
    func patiently(_ change: () -> Void) {
        isPatient = true
        change()
        isPatient = false
    }

    /// Returns a plan of which modules should serve, and why others should not.
    ///
    /// - Parameters:
    ///   - wanted: The name of a registered module that is to start.
    ///   - records: Hypothetical records of files. Default: the current records.
    func plan(
        _ change: ProgramChange? = nil, starting wanted: String? = nil, with records: [PathKey: FileRecord]? = nil
    ) -> Plan {
        let table = registry.table
        var plan = Plan(
            Array((records ?? folders.records).values), serving, change, table.routes, table.declaredServices.program,
            starting: starts.reasons, registered: table.contents.known.modules)
        let needed = namesOfNeeded.union([wanted].compactMap(\.self))
        plan.rest { $0.module.isOpen || needed.contains($0.outline.name) }
        return plan
    }

    /// Scans all folders again and reconciles what serves.
    func update() { FolderUpdate(self).run(Set(configuration.folders)) }
}
