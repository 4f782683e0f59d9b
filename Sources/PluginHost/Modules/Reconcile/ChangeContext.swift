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
    /// The threads that wait for hooks, so that a change need not.
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
    /// Whether the host is shutting down. May be accessed from any thread.
    let isEnding = Atomic<Bool>(false)
    var folders = FolderContents()
    var serving = Serving()
    var drains = Drains()
    var starts = ModuleStarts()
    /// The content of the table that is proposed to starting modules; `nil` if there is none.
    var proposed: Proposed?
    /// Whether what is known about files will be recorded.
    var isRecordScheduled = false
    /// The files of registered modules that are held.
    let held = HeldFiles()
    /// Whether the files of registered modules will be held.
    var isHoldScheduled = false
    /// The modules that may be put to rest.
    var idle = IdleModules()
    /// How many modules were started while a change waited for code of a module.
    var nestedStarts = 0
    /// How many nested changes have not published what they start.
    var unpublished = 0
    /// Whether a change waits for hooks until they have returned or have exceeded their timeout.
    private(set) var isPatient = false
    /// How long the current change still waits for hooks.
    let patience = ChangePatience()
    /// The problems of the host itself.
    var ownProblems = OwnProblems()
    /// What is known of the modules that need not be planned again; `nil` after a plan of all modules.
    private var settled: SettledModules?
    /// How many files were examined, and how many modules were planned, by all changes, for tests.
    var examined = (files: 0, modules: 0)

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
    func tell(_ change: @autoclosure () -> HostChange) {
        publish()
        if announcements.haveObservers { announcements.tell(change()) }
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
        _ change: ProgramChange? = nil, starting wanted: String? = nil, with records: FolderContents.Records? = nil
    ) -> Plan {
        let table = registry.table
        // Modules that start instead of only being registered, including those whose interceptors are in effect.
        let needed = Set((table.interception?.entries.compactMap(\.rule?.module) ?? []) + [wanted].compactMap(\.self))
        if change == nil, records == nil, needed.isEmpty, let plan = planOfRegistrations(table) { return plan }
        var plan: Plan
        if change == nil, records == nil, let part = planOfChanges(table, starting: needed) {
            plan = part
        } else {
            let all = records ?? folders.records
            examined.modules += all.count
            plan = Plan(
                Array(all.values), serving, change, table.routes, table.declaredServices.program,
                starting: starts.reasons, registered: table.contents.known.modules)
        }
        // Modules that replace one that serves start, too.
        plan.rest { [serving] candidate in
            let name = candidate.outline.name
            return candidate.module.isOpen || serving.modules[name] != nil || needed.contains(name)
        }
        return plan
    }

    /// Returns the plan of a start that only registers modules; `nil` if there is more to do.
    private func planOfRegistrations(_ table: Table) -> Plan? {
        guard let records = folders.newRecords, serving.isEmpty, starts.slow.isEmpty, starts.parked.isEmpty,
            table.contents.known.isEmpty, table.generations.isEmpty, table.declaredServices.program.isEmpty
        else { return nil }
        let prepared = disk?.registry?.prepared?.registrations
        let isPrepared = prepared?.areOf(records, table.routes) == true
        guard let plan = isPrepared ? prepared : Registrations(records, table.routes) else { return nil }
        if !isPrepared { examined.modules += records.count }
        return Plan(plan)
    }

    /// Returns a plan of the modules that have changed since they were planned, and of those that the changes may
    /// affect; `nil` if all modules must be planned.
    private func planOfChanges(_ table: Table, starting wanted: Set<String>) -> Plan? {
        guard !folders.areAllUnplanned,
            folders.unplanned.count <= 16 || folders.unplanned.count * 2 < folders.records.count
        else { return nil }
        if settled == nil, folders.records.isEmpty { return nil }
        let known = table.contents.known
        let settled = settled ?? SettledModules(folders, serving, known)
        self.settled = settled
        settled.note(folders.takeUnplanned(), folders)
        guard starts.slow.isEmpty, starts.parked.isEmpty, !settled.haveEnded(in: serving),
            let names = settled.affected(by: folders, starting: wanted)
        else { return nil }
        examined.modules += names.count
        var present = Serving()
        present.program = serving.program
        for name in names { present.modules[name] = serving.modules[name] }
        let plan = Plan(
            settled.records(of: names, in: folders), present, nil, table.routes, table.declaredServices.program,
            registered: names.compactMap { known.module(named: $0) }, besides: .init(modules: settled, besides: names))
        return plan.dependsOnOrder ? nil : plan
    }

    /// Prepares the data for plans of changes, so that the first change need not do so.
    func prepareForChanges() {
        guard configuration.watches, settled == nil else { return }
        later { context in
            guard context.settled == nil, !context.folders.hasUnplanned else { return }
            context.settled = SettledModules(context.folders, context.serving, context.registry.table.contents.known)
        }
    }

    /// Records that a plan has been carried out.
    func settle(_ plan: Plan) {
        if let names = plan.names {
            settled?.refresh(names, folders, serving, registry.table.contents.known)
        } else {
            settled = nil
            _ = folders.takeUnplanned()
        }
    }

    /// Scans all folders again and reconciles what serves.
    func update() { FolderUpdate(self).run(Set(configuration.folders)) }
}
