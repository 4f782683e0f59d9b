import CPluginABI
import CPluginHost
import Dispatch
import Foundation
import PluginABI
import PluginFile
import Synchronization

/// Brings what is in the folders into the registry. Changes run one at a time, on a queue of their own; calls never
/// wait for them.
final class Lifecycle: Sendable {
    let configuration: HostConfiguration
    let moduleChanges: ModuleChanges
    let staging: Staging
    let journal: Journal
    let loader: ModuleLoader
    let store: VersionStore
    let overdueEvents = OverdueEvents()
    let hooks: Hooks
    var queue: SerialThread { moduleChanges.queue }
    var calls: Calls { moduleChanges.calls }
    var core: HostCore { moduleChanges.calls.core }
    let state = Mutex(State())
    /// Nil after the end.
    private let observers = Mutex<[UUID: AsyncStream<HostChange>.Continuation]?>([:])

    struct State {
        /// By path.
        var records: [PathKey: FileRecord] = [:]
        /// By folder.
        var problems: [PathKey: PluginError] = [:]
        var otherProblems: [PluginError] = []
        /// Those that the log has.
        var loggedProblems: [PluginError] = []
        /// By path.
        var declarations: [PathKey: DeclarationRecord] = [:]
        /// Why routes and services of files do not stand, by path, as far as it has been told.
        var toldDeclarationProblems: [PathKey: PluginError] = [:]
        /// What serves, by module.
        var served: [String: Served] = [:]
        /// Modules that were removed, and why, for errors.
        var departed: [(manifest: ModuleManifest, reason: String)] = []
        /// What serves no more; `draining` comes next.
        var leaving: [Draining] = []
        var draining: [Draining] = []
        /// The last that were torn down.
        var retired: [GenerationStatus] = []
        /// Of all that were torn down.
        var retiredTotal = RetiredTotal()
        /// Whether somebody will look at `draining` again.
        var isDraining = false
        /// What serves no more and could not be kept for want of something, to be tried again; the first that left first.
        var unkept: [Served] = []
        /// Paths of files that failed, to be told.
        var failures: [String] = []
        /// Whether other modules are not served, or for other reasons, than the last table says.
        var hasNewAbsentees = false
        var isLookingAgain = false
        /// Whether somebody will try what has failed again, and after how long.
        var isRetrying = false
        var retryDelay = Lifecycle.firstRetryDelay
        /// Whether what has failed is tried again by the look that runs.
        var retriesFailures = false
        /// Paths of files that may have killed the last host, to be tried once more.
        var suspected: Set<PathKey> = []
        /// Whether such files are tried at once.
        var triesSuspected = false
        /// Those that are being tried.
        var tried: Set<PathKey> = []
        var watcher: FolderWatcher?
        var isStopped = false
        var hasTriedMemory = false
        var memoryPressure: MemoryPressure?
    }

    init(_ configuration: HostConfiguration, _ moduleChanges: ModuleChanges) throws(PluginError) {
        self.configuration = configuration
        self.moduleChanges = moduleChanges
        staging = try Staging(base: configuration.stagingFolder, maximumFileBytes: configuration.maximumFileBytes)
        journal = Journal(stateFolder: configuration.stateFolder, checksTrust: !configuration.trustsEveryone)
        store = VersionStore(
            stateFolder: configuration.stateFolder,
            limit: .init(versions: configuration.keptVersions, bytes: configuration.keptBytes),
            checksTrust: !configuration.trustsEveryone)
        loader = ModuleLoader(
            journal: journal, allowsOtherToolchains: configuration.allowsOtherToolchains,
            guardian: Guardian(
                runner: moduleChanges.runner, owner: ObjectIdentifier(moduleChanges.calls.core),
                timeout: configuration.hookTimeout, log: configuration.log))
        hooks = Hooks(calls: moduleChanges.calls, runner: moduleChanges.runner, journal: journal)
        if configuration.retriesQuarantined { journal.release() }
    }

    // MARK: Start, change, stop

    func start() {
        holdThreads()
        // Before the folders: what is linked in keeps what it claims.
        queue.sync {
            guard !isStopped else { return }
            recoverFolders()
            lookIntoProgram()
            settle()
        }
        tellOwnProblems()
        if configuration.watches {
            // Watched before it is read, so that nothing can come between.
            let watcher = FolderWatcher(
                folders: configuration.folders, includesSubfolders: configuration.includesSubfolders,
                quietTime: configuration.quietTime
            ) { [weak self] folders in
                self?.queue.sync { self?.update(folders) }
            }
            watcher.start()
            let isOver = state.withLock { state in
                state.watcher = watcher
                return state.isStopped
            }
            if isOver { return watcher.stop() }
        }
        watchMemoryIfAwaited()
        queue.sync { update(Set(configuration.folders)) }
        guard configuration.watches else { return waitForWriters() }
        queue.sync {
            guard !isStopped, state.withLock({ !$0.suspected.isEmpty }) else {
                return state.withLock { $0.triesSuspected = true }
            }
            trySuspected()
            update([])
        }
    }

    /// Makes the threads that changes and deadlines need, before anything else can take the last ones.
    private func holdThreads() {
        Deadlines.hold()
        guard !queue.hold() else { return }
        let problem = PluginError(
            .outOfResources,
            "The system has no thread left for changes of modules: they run when one can be had. "
                + ProcessLimits.ofThreads)
        state.withLock { $0.otherProblems.append(problem) }
    }

    /// Nobody looks again later: so a file that is being written gets a second.
    private func waitForWriters() {
        for _ in 0..<50 where records.values.contains(where: { $0.isAwaited || $0.canPass }) {
            usleep(20_000)
            queue.sync { updateAgain(Set(configuration.folders)) }
        }
    }

    /// Reads the folders again, for a second at most until nobody writes a file any more. Runs on the queue.
    func waitForWriters(of path: String) {
        for _ in 0..<50 {
            update(Set(configuration.folders))
            guard records[path]?.isAwaited == true else { return }
            usleep(20_000)
        }
    }

    /// Reads folders again and does what has become necessary. Runs on the queue.
    func update(_ folders: Set<String>) {
        guard !state.withLock({ $0.isStopped }) else { return }
        for folder in configuration.folders where folders.contains(folder) { look(into: folder) }
        settle()
        keepAgain()
        releaseTried()
        settleDeclarations()
        tellFailures()
        tellOwnProblems()
        lookAgain()
        retryLater()
    }

    /// Tells once what the host has lost, or is about to lose: its journal, the last of its memory maps, and for the time
    /// being what the kernel tells of its folders.
    private func tellOwnProblems() {
        let (lost, watcher) = ([journal.problem, MapsBudget.shared.warning], state.withLock { $0.watcher })
        for problem in (lost + [watcher?.problem]).compactMap(\.self) {
            let isNew = state.withLock { state in
                guard !state.loggedProblems.contains(problem) else { return false }
                state.loggedProblems.append(problem)
                if lost.contains(problem) { state.otherProblems.append(problem) }
                return true
            }
            guard isNew else { continue }
            calls.settings.log(LogEntry(level: .warning, message: problem.message))
            tell(.problem(problem))
        }
    }

    /// Does what has become necessary because the program has registered something, or taken it away.
    func settleAgain() {
        queue.sync {
            guard !state.withLock({ $0.isStopped }) else { return }
            settle()
            tellFailures()
        }
    }

    /// Tries modules again that were refused: what they claim may be free now. From any thread; it does not wait.
    func retryRefused() {
        let isAnyRefused = state.withLock { state in
            state.records.values.contains { if case .refused = $0.verdict { true } else { false } }
        }
        guard isAnyRefused else { return }
        queue.async { [weak self] in
            guard let self, !isStopped else { return }
            settle()
            tellFailures()
        }
    }

    /// Files that are being written are looked at again soon: who writes one through a name in another folder closes it
    /// without the watcher's knowing.
    private func lookAgain() {
        let folders = Set(records.values.filter(\.isAwaited).map(\.folder)).union(foldersOfAwaitedDeclarations)
        let begins = state.withLock { state in
            guard configuration.watches, !folders.isEmpty, !state.isLookingAgain, !state.isStopped else { return false }
            state.isLookingAgain = true
            return true
        }
        guard begins else { return }
        queue.async(after: .milliseconds(200)) { [weak self] in
            self?.state.withLock { $0.isLookingAgain = false }
            self?.update(folders)
        }
    }

    var isStopped: Bool { state.withLock { $0.isStopped } }

    /// Tears everything down, in reverse order, each module after its last call; waits for them within the timeout.
    /// From code that a change itself runs (a log closure, a module's `setUp`) it only begins, and goes on when the
    /// change is done.
    func stop() {
        if moduleChanges.isChanging {
            return ThreadPool.shared.run { self.stop() }
        }
        state.withLock { $0.watcher }?.stop()
        state.withLock { $0.memoryPressure.take() }?.stop()
        queue.sync {
            let isFirst = state.withLock { state in
                defer { state.isStopped = true }
                return !state.isStopped
            }
            guard isFirst else { return }
            var remaining = calls.registry.table.generations
            announce("host.willTerminate", timeout: configuration.shutdownTimeout) { [calls, configuration] in
                calls.postHostEvent("host.willTerminate", waitingAtMost: configuration.shutdownTimeout)
            }
            announceStop(to: remaining)
            let deadline = DispatchTime.now() + configuration.shutdownTimeout.dispatchInterval
            for generation in remaining.reversed() {
                remaining.removeLast()
                calls.registry.publish(remaining, isStopped: true)
                tearDown(generation, before: deadline)
                announce("module.removed", timeout: configuration.shutdownTimeout) { [calls] in
                    calls.postRemoved(generation)
                }
            }
            calls.registry.publish([], isStopped: true)
            for draining in state.withLock({ $0.draining }) { tearDown(draining.generation, before: deadline) }
            staging.close()
            journal.close()
            releaseLinkedModules()
            state.withLock { state in
                for path in state.served.values.map(\.path) {
                    state.records[path]?.verdict = .ended
                    state.records[path]?.since = Date()
                }
                state.served = [:]
            }
            queue.letGo()
            Deadlines.letGo()
        }
        let last = observers.withLock { observers in
            defer { observers = nil }
            return observers ?? [:]
        }
        for observer in last.values { observer.finish() }
    }

    // MARK: Who wants to know

    /// The records, as they are now.
    var records: [PathKey: FileRecord] { state.withLock { $0.records } }

    /// Every file, sorted by path.
    ///
    /// What the table serves is active, also in the moment before that is entered in the records: who could call a module
    /// sees it here.
    var modules: [ModuleStatus] {
        let (records, served) = state.withLock { ($0.records, $0.served) }
        var serving: [ObjectIdentifier: Generation] = [:]
        for generation in calls.registry.table.generations {
            if let module = generation.module { serving[ObjectIdentifier(module)] = generation }
        }
        var statuses = records.values.map { record in
            let known = served.values.first { $0.path.hasBytes(of: record.path) }
            guard let module = record.module, let generation = serving[ObjectIdentifier(module)],
                generation !== known?.generation
            else { return record.status(known) }
            return record.status(
                Served(generation: generation, module: module, path: record.path, since: generation.created))
        }
        for served in served.values where records[served.path] == nil { statuses.append(served.statusWithoutFile) }
        return statuses.sorted { PathKey($0.file) < PathKey($1.file) }
    }

    /// What is wrong with folders and with the host's own.
    var problems: [PluginError] {
        state.withLock { state in
            state.problems.sorted { $0.key < $1.key }.map(\.value) + state.otherProblems
                + [state.watcher?.problem].compactMap(\.self)
        }
            + declarationProblems + store.problems
    }

    /// What the log does not have of them.
    var unloggedProblems: [PluginError] {
        let logged = state.withLock { $0.loggedProblems }
        return problems.filter { !logged.contains($0) }
    }

    /// Everything that happens from now on; ends at once after the end.
    func changes() -> AsyncStream<HostChange> {
        let (stream, continuation) = AsyncStream.makeStream(of: HostChange.self)
        let id = UUID()
        continuation.onTermination = { [weak self] _ in
            _ = self?.observers.withLock { $0?.removeValue(forKey: id) }
        }
        let isOver = observers.withLock { observers in
            observers?[id] = continuation
            return observers == nil
        }
        if isOver { continuation.finish() }
        return stream
    }

    func tell(_ change: HostChange) {
        for observer in observers.withLock({ $0?.values.map(\.self) ?? [] }) { observer.yield(change) }
    }

    func put(_ record: FileRecord) { state.withLock { $0.records[record.path] = record } }
}
