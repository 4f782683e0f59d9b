import CPluginABI
import Glibc
import PluginABI
import PluginFile
import Synchronization

/// The modules of a host from their coming to their going: brings what is in the folders, linked into the program and
/// registered by it into the registry. Changes run one at a time, on a queue of their own; calls never wait for them.
final class Lifecycle: Sendable {
    private enum Phase {
        case made
        case started(Disk)
        case stopped(Disk)
    }

    private let context: ChangeContext
    private let phase = Mutex(Phase.made)

    init(_ configuration: HostConfiguration, _ core: HostCore) { context = ChangeContext(configuration, core) }

    private var configuration: HostConfiguration { context.configuration }

    // MARK: Start

    /// Takes in what is there, and watches the folders from then on. Does nothing the second time.
    ///
    /// - Throws: `stagingFailed`; `hostStopped`.
    func start() throws(PluginError) {
        guard let disk = try begin() else { return }
        retainThreads()
        // Before the folders: what is linked in keeps what it claims.
        whileGoing { context in
            context.disk = disk
            FolderScan.recover(context)
            LinkedModules(context: context).take()
            context.reconcile()
            context.tellOwnProblems()
        }
        // Watched before it is read, so that nothing can come between.
        if configuration.watches, !watch() { return }
        context.memoryWatch.beginIfAwaited()
        whileGoing { $0.update() }
        if configuration.watches {
            whileGoing { FileScan(context: $0).trySuspects() }
        } else {
            waitForWriters()
        }
    }

    /// - Returns: What needs the disk; nil when the host has been started before.
    private func begin() throws(PluginError) -> Disk? {
        try phase.withLock { (phase) throws(PluginError) in
            switch phase {
            case .made:
                let disk = try Disk(configuration, context.runner, owner: context.core)
                phase = .started(disk)
                context.announcements.begin()
                return disk
            case .started: return nil
            case .stopped:
                throw PluginError(
                    .hostStopped, "The host has been shut down, and does not start again. Make another PluginHost.")
            }
        }
    }

    /// Makes the threads that changes and deadlines need, before anything else can take the last ones.
    private func retainThreads() {
        Deadlines.retainThreads()
        guard !context.queue.retainThread() else { return }
        let problem = PluginError(
            .outOfResources,
            "The system has no thread left for changes of modules: they run when one can be had. "
                + ProcessLimits.ofThreads)
        whileGoing { $0.ownProblems.all.append(problem) }
    }

    /// Returns false when the host has ended meanwhile.
    private func watch() -> Bool {
        let watcher = FolderWatcher(
            folders: configuration.folders, includesSubfolders: configuration.includesSubfolders,
            quietTime: configuration.quietTime
        ) { [weak context] folders in
            context?.queue.sync { context.map { FolderUpdate($0).run(folders) } }
        }
        watcher.start()
        context.watcher.withLock { $0 = watcher }
        guard isStopped else { return true }
        watcher.stop()
        return false
    }

    /// Nobody looks again later: so a file that is being written gets a second.
    private func waitForWriters() {
        for _ in 0..<50
        where context.published.folders.records.values.contains(where: { $0.isAwaited || $0.canPass }) {
            usleep(20_000)
            whileGoing { FolderUpdate($0, retryingFailures: true).run(Set($0.configuration.folders)) }
        }
    }

    // MARK: End

    var isStopped: Bool { phase.withLock { if case .stopped = $0 { true } else { false } } }

    /// Tears everything down, in reverse order, each module after its last call; waits for them within the timeout. What the
    /// program has registered with a host that was not started is only unregistered.
    ///
    /// From code that a change itself runs (a log closure, a module's `setUp`) it only begins, and goes on when the
    /// change is done.
    func stop() {
        if isChanging { return ThreadPool.shared.run { self.stop() } }
        context.watcher.withLock { $0 }?.stop()
        context.queue.sync {
            let before = phase.withLock { phase in
                defer { if case .started(let disk) = phase { phase = .stopped(disk) } }
                return phase
            }
            switch before {
            case .made: for served in context.serving.program.reversed() { context.reconcile(.unregisters(served)) }
            case .started(let disk): end(disk)
            case .stopped: break
            }
        }
        if isStopped { context.announcements.end() }
    }

    private func end(_ disk: Disk) {
        context.isStopped = true
        context.memoryWatch.end()
        Drain(context: context).tearDownAll()
        disk.staging.close()
        disk.journal.close()
        LinkedModules(context: context).release()
        for served in context.serving.modules.values {
            if let record = context.folders.records[served.path]?.decided(.ended) { context.folders.put(record) }
        }
        context.serving.replace(by: [])
        context.publish()
        context.queue.releaseThread()
        Deadlines.releaseThreads()
    }

    // MARK: Changes

    /// Whether this thread is changing modules, or runs a hook for that: it cannot wait for the end of the change.
    private var isChanging: Bool {
        context.queue.isCurrent || HookRunner.isCurrent(ObjectIdentifier(context.core))
    }

    /// Runs work of the queue on this thread, unless the host has ended.
    private func whileGoing(_ work: (ChangeContext) -> Void) {
        context.queue.sync { if !context.isStopped { work(context) } }
    }

    /// Runs a change on this thread, when no other one runs.
    ///
    /// - Throws: `circularWait` from code that a change runs.
    private func change<Result>(_ body: (ChangeContext) throws(PluginError) -> Result) throws(PluginError) -> Result {
        if isChanging {
            throw PluginError(
                .circularWait,
                "Modules are being changed on this very thread: code that a change runs, such as a setUp, cannot "
                    + "make another change.")
        }
        let outcome: Swift.Result<Result, PluginError> = context.queue.sync {
            do throws(PluginError) { return .success(try body(context)) } catch { return .failure(error) }
        }
        return try outcome.get()
    }

    func register(_ description: UnsafePointer<plugin_module>) throws(PluginError) {
        let module = try ModuleLoader(journal: nil, allowsOtherToolchains: true).check(description, .program)
        try change { (context) throws(PluginError) in
            if context.isStopped {
                throw PluginError(
                    .hostStopped, "The host has been shut down: \(module.manifest.name) cannot be registered.")
            }
            if let refusal = context.reconcile(.registers(module)) { throw refusal }
        }
        context.tellDeclarationProblems()
    }

    /// - Returns: Whether the program has registered something of the name.
    func unregister(_ name: String) throws(PluginError) -> Bool {
        try change { (context) throws(PluginError) in
            guard let served = context.serving.program.first(where: { $0.name == name }) else { return false }
            context.reconcile(.unregisters(served))
            return true
        }
    }

    func remove(_ name: String, force: Bool, dryRun: Bool) throws(PluginError) -> PlannedChange {
        _ = try startedDisk
        return try change { (context) throws(PluginError) in
            try Removal(context: context, name: name, force: force, dryRun: dryRun).make()
        }
    }

    func rollback(_ name: String, to version: String?, force: Bool, dryRun: Bool) throws(PluginError) -> PlannedChange {
        _ = try startedDisk
        return try change { (context) throws(PluginError) in
            try Rollback(context: context, name: name, force: force, dryRun: dryRun).make(to: version)
        }
    }

    private var startedDisk: Disk {
        get throws(PluginError) {
            if case .started(let disk) = phase.withLock(\.self) { return disk }
            throw PluginError(.hostStopped, "The host has not been started, or has been shut down.")
        }
    }

    /// Tries modules again that were refused: what they claim may be free now. From any thread; it does not wait.
    func retryRefused() {
        guard context.published.folders.records.values.contains(where: { $0.verdict.isRefusal }) else { return }
        context.later { $0.reconcile() }
    }

    /// Watches the memory if somebody subscribes to `host.memoryPressure`, and the host goes on.
    func watchMemoryIfAwaited() {
        if case .started = phase.withLock(\.self) { context.memoryWatch.beginIfAwaited() }
    }

    // MARK: Who wants to know

    /// What the program has registered, then every file, sorted by path.
    var modules: [ModuleStatus] { context.published.modules(context.registry.table) }

    /// Every generation, those that serve first; of those that are retired, the last hundred.
    var generations: [GenerationStatus] { context.published.generations }

    var retiredTotal: RetiredTotal { context.published.drains.total }

    /// What is wrong with folders and with the host's own.
    var problems: [PluginError] {
        let published = context.published
        return published.folders.problems.sorted { $0.key < $1.key }.map(\.value) + published.ownProblems.all
            + [watcher?.problem].compactMap(\.self)
            + published.folders.declarationProblems(context.registry.table).map(\.error) + (store?.problems ?? [])
    }

    /// What the log does not have of them.
    var unloggedProblems: [PluginError] {
        let logged = context.published.ownProblems.logged
        return problems.filter { !logged.contains($0) }
    }

    /// Where versions are kept; nil before the start.
    var store: VersionStore? {
        switch phase.withLock(\.self) {
        case .made: nil
        case .started(let disk), .stopped(let disk): disk.store
        }
    }

    /// What serves of a file's or a linked module.
    func served(_ name: String) -> Served? { context.published.serving.modules[name] }

    var announcements: Announcements { context.announcements }
    var memoryWatch: MemoryWatch { context.memoryWatch }
    var queue: SerialThread { context.queue }
    var watcher: FolderWatcher? { context.watcher.withLock { $0 } }

    /// Tells which files of routes and services a change has displaced.
    func tellDeclarationProblems() { context.tellDeclarationProblems() }
}
