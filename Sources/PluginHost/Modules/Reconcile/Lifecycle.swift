import Glibc
import PluginABI
import PluginFile
import Synchronization

/// The life cycle of a host's modules from start to shutdown: brings into the registry the modules that are in the
/// folders, linked into the program, or registered by it. Changes run one at a time, on a queue of their own; calls
/// never wait for them.
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

    /// Loads the modules and starts watching the folders. Does nothing if the host is already started.
    ///
    /// - Throws: `stagingFailed`; `hostStopped`.
    func start() throws(PluginError) {
        guard let disk = try begin() else { return }
        // Meanwhile, another thread reads what earlier hosts have recorded.
        LinkedRecords.note()
        retainThreads()
        // Linked modules are loaded before the folders are scanned, so that they keep the names they claim.
        whileGoing { context in
            context.disk = disk
            FolderScan.recover(context)
            LinkedModules(context: context).take()
            if !context.folders.records.isEmpty { context.reconcile() }
            context.tellOwnProblems()
        }
        // The folders are watched before they are read, so that no change is missed in between.
        if configuration.watches, !watch() { return }
        context.memoryWatch.beginIfAwaited()
        whileGoing { $0.update() }
        if configuration.watches {
            whileGoing { FileScan(context: $0).trySuspects() }
        } else {
            waitForWriters()
        }
        whileGoing { $0.tellUnknownIsolatedModules() }
    }

    /// Enters the started phase.
    ///
    /// - Returns: The parts that use the disk; `nil` if the host is already started.
    private func begin() throws(PluginError) -> Disk? {
        try phase.withLock { (phase) throws(PluginError) in
            switch phase {
            case .made:
                let workers = Workers(configuration) { [weak context] generation in
                    context.flatMap { Restart.begin(of: generation, $0) }
                }
                let disk = try Disk(configuration, context.runner, owner: context.core, workers) { [weak context] in
                    context?.publish()
                }
                phase = .started(disk)
                context.acceptStarts()
                return disk
            case .started: return nil
            case .stopped:
                throw PluginError(
                    .hostStopped, "The host has been shut down and cannot be started again. Create another PluginHost.")
            }
        }
    }

    /// Starts the threads that changes and deadlines need, before the process runs out of threads.
    private func retainThreads() {
        Deadlines.retainThreads()
        guard !context.queue.retainThread() else { return }
        let problem = PluginError(
            .outOfResources,
            "The system has no thread left for changes of modules: they run when a thread becomes available. "
                + ProcessLimits.ofThreads)
        whileGoing { $0.ownProblems.all.append(problem) }
    }

    /// Starts watching the folders. Returns false if the host has been shut down.
    private func watch() -> Bool {
        let watcher = FolderWatcher(
            folders: configuration.folders, includesSubfolders: configuration.includesSubfolders,
            quietTime: configuration.quietTime
        ) { [weak context] changes in
            context?.queue.sync {
                guard let context else { return }
                // The change may have waited for others. It includes everything that has happened until it begins.
                var changes = changes
                if let watcher = context.watcher.withLock(\.self) { changes.add(watcher.takePending()) }
                FolderUpdate(context).run(changes)
            }
        }
        context.watcher.withLock { $0 = watcher }
        watcher.start()
        guard isStopped else { return true }
        watcher.stop()
        return false
    }

    /// Waits up to a second for files that are being written, since a host that does not watch its folders scans them
    /// only once.
    private func waitForWriters() {
        for _ in 0..<50
        where context.published.folders.unsettledRecords.contains(where: { $0.isAwaited || $0.canPass }) {
            usleep(20_000)
            whileGoing { FolderUpdate($0, retryingFailures: true).run(Set($0.configuration.folders)) }
        }
    }

    // MARK: Shutdown

    var isStopped: Bool { phase.withLock { if case .stopped = $0 { true } else { false } } }

    /// Tears down all modules in reverse order, each after its last call, and waits for these calls up to the shutdown
    /// timeout. Modules that the program has registered with a host that was not started are only unregistered.
    ///
    /// If it is called by code that runs during a change (a log closure, a module's `setUp`), it returns immediately,
    /// and the host is shut down after the change.
    func stop() {
        if isChanging { return ThreadPool.shared.run { self.stop() } }
        context.watcher.withLock { $0 }?.stop()
        // A change may wait for a debugger.
        if case .started(let disk) = phase.withLock(\.self) { disk.workers.endWaiting() }
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
        context.isEnding.store(true, ordering: .sequentiallyConsistent)
        context.serveRequests()
        context.recordKnown()
        for file in context.held.take(unless: { _ in false }) { HeldFiles.release(file) }
        context.memoryWatch.end()
        Drain(context: context).tearDownAll()
        disk.workers.endAll()
        disk.staging.close()
        disk.journal.close()
        LinkedModules(context: context).release()
        for served in context.serving.modules.values {
            if let record = context.folders.records[served.path]?.decided(.ended) { context.folders.judge(record) }
        }
        context.serving.replace(by: [])
        context.publish()
        context.queue.releaseThread()
        Deadlines.releaseThreads()
    }

    // MARK: Changes

    /// Whether this thread is changing modules, or runs a hook for a change, so that it cannot wait for the end of the
    /// change.
    private var isChanging: Bool {
        context.queue.isCurrent || HookRunner.isCurrent(ObjectIdentifier(context.core))
    }

    /// Runs work on this thread while it occupies the queue, unless the host was shut down.
    private func whileGoing(_ work: (ChangeContext) -> Void) {
        context.queue.sync { if !context.isStopped { work(context) } }
    }

    /// Runs a change on this thread as soon as no other change is running.
    ///
    /// - Throws: `circularWait` if it is called by code that runs during a change.
    private func change<Result>(_ body: (ChangeContext) throws(PluginError) -> Result) throws(PluginError) -> Result {
        if isChanging {
            throw PluginError(
                .circularWait,
                "Modules are being changed on this thread: code that runs during a change, such as setUp, cannot "
                    + "make another change.")
        }
        let outcome: Swift.Result<Result, PluginError> = context.queue.sync {
            do throws(PluginError) { return .success(try body(context)) } catch { return .failure(error) }
        }
        return try outcome.get()
    }

    /// Registers a module.
    ///
    /// - Parameter replaces: Whether it takes the place of a module of its name that the program has registered.
    func register(_ description: UnsafePointer<plugin_module>, replaces: Bool = false) throws(PluginError) {
        let loader = ModuleLoader(
            journal: nil, allowsOtherToolchains: true, scheme: context.configuration.firstScheme)
        let module = try loader.check(description, .program)
        try change { (context) throws(PluginError) in
            if context.isStopped {
                throw PluginError(
                    .hostStopped, "The host has been shut down: \(module.manifest.name) cannot be registered.")
            }
            let name = module.manifest.name
            let old = replaces ? context.serving.program.first { $0.name == name } : nil
            if let refusal = context.reconcile(.registers(module, replacing: old)) { throw refusal }
        }
        context.tellDeclarationProblems()
    }

    /// Unregisters a module that the program has registered.
    ///
    /// - Returns: Whether there is such a module.
    func unregister(_ name: String) throws(PluginError) -> Bool {
        try change { (context) throws(PluginError) in
            guard let served = context.serving.program.first(where: { $0.name == name }) else { return false }
            context.reconcile(.unregisters(served))
            return true
        }
    }

    func remove(_ name: String, force: Bool, dryRun: Bool) throws(PluginError) -> PlannedChange {
        try requireStarted()
        return try change { (context) throws(PluginError) in
            try Removal(context: context, name: name, force: force, dryRun: dryRun).make()
        }
    }

    func restart(_ name: String) throws(PluginError) {
        try requireStarted()
        try change { (context) throws(PluginError) in try context.restart(name) }
    }

    func retry(_ name: String) throws(PluginError) {
        try requireStarted()
        try change { (context) throws(PluginError) in try context.retry(name) }
    }

    func update() throws(PluginError) {
        try requireStarted()
        try change { $0.update() }
    }

    func rollback(_ name: String, to version: String?, force: Bool, dryRun: Bool) throws(PluginError) -> PlannedChange {
        try requireStarted()
        return try change { (context) throws(PluginError) in
            try Rollback(context: context, name: name, force: force, dryRun: dryRun).make(to: version)
        }
    }

    private func requireStarted() throws(PluginError) {
        if case .started = phase.withLock(\.self) { return }
        throw PluginError(.hostStopped, "The host has not been started, or has been shut down.")
    }

    /// Retries modules that were refused, since the names they claim may be available now. May be called from any
    /// thread; does not wait.
    func retryRefused() {
        guard context.published.folders.unsettledRecords.contains(where: { $0.verdict.isRefusal }) else { return }
        context.later { $0.reconcile() }
    }

    /// Watches for memory pressure if `host.memoryPressure` has subscribers and the host is running.
    func watchMemoryIfAwaited() {
        if case .started = phase.withLock(\.self) { context.memoryWatch.beginIfAwaited() }
    }

    // MARK: Status

    /// The status of the modules that the program has registered, then of every file, sorted by path.
    var modules: [ModuleStatus] {
        context.published.modules(context.registry.table).map { status in
            var status = status
            if let name = status.name { status.restarts = context.crashes.restarts(of: name) }
            return status
        }
    }

    /// The generations that serve, those that drain, and the last hundred that were retired.
    var generations: [GenerationStatus] { context.published.generations }

    var retiredTotal: RetiredTotal { context.published.drains.total }

    /// The problems of the folders and of the host itself.
    var problems: [PluginError] {
        let published = context.published
        return published.folders.problems.sorted { $0.key < $1.key }.map(\.value) + published.ownProblems.all
            + [watcher?.problem].compactMap(\.self)
            + published.folders.declarationProblems(context.registry.table).map(\.error)
            + context.registry.table.deadRoutes.problems + (store?.problems ?? []) + (registry?.problems ?? [])
    }

    /// The problems that were not logged.
    var unloggedProblems: [PluginError] {
        let logged = context.published.ownProblems.logged
        return problems.filter { !logged.contains($0) }
    }

    /// The record of what earlier hosts have learnt about files; `nil` before the start, or if none is kept.
    private var registry: RegistryCache? {
        switch phase.withLock(\.self) {
        case .made: nil
        case .started(let disk), .stopped(let disk): disk.registry
        }
    }

    /// The version store; `nil` before the start.
    var store: VersionStore? {
        switch phase.withLock(\.self) {
        case .made: nil
        case .started(let disk), .stopped(let disk): disk.store
        }
    }

    /// Returns the serving generation of the module with this name, if the module comes from a file or is linked into
    /// the program.
    func served(_ name: String) -> Served? { context.published.serving.modules[name] }

    /// How many files were examined, and how many modules were planned, by all changes, for tests.
    var examined: (files: Int, modules: Int) { context.queue.sync { context.examined } }

    /// Holds the files of registered modules, and returns how many are held, for tests.
    func holdFiles() -> Int {
        context.queue.sync {
            context.holdFiles()
            return context.held.count
        }
    }

    /// Puts a module to rest even if it is in use, for tests.
    func rest(_ name: String) {
        context.queue.sync { context.rest([context.serving.modules[name]].compactMap(\.self), "is tested") }
    }

    var announcements: Announcements { context.announcements }
    var memoryWatch: MemoryWatch { context.memoryWatch }
    var queue: SerialThread { context.queue }
    var watcher: FolderWatcher? { context.watcher.withLock { $0 } }

    /// Reports routes and services of files that a change has displaced.
    func tellDeclarationProblems() { context.tellDeclarationProblems() }
}
