import CPluginABI
import CPluginHost
import Dispatch
import Foundation
import PluginABI
import Synchronization

/// Brings what is in the folders into the registry. Changes run one at a time, on a queue of their own; calls never
/// wait for them.
final class Lifecycle: Sendable {
    let configuration: PluginHost.Configuration
    let dispatcher: Dispatcher
    let staging: Staging
    let journal: Journal
    let loader: ModuleLoader
    var queue: DispatchQueue { dispatcher.changes }
    let state = Mutex(State())
    /// Nil after the end.
    private let observers = Mutex<[UUID: AsyncStream<HostChange>.Continuation]?>([:])

    struct State {
        /// By path.
        var records: [String: FileRecord] = [:]
        /// By folder.
        var problems: [String: PluginError] = [:]
        var otherProblems: [PluginError] = []
        /// By path.
        var routeFiles: [String: RouteFileRecord] = [:]
        /// Why routes of files do not stand, by path, as far as it has been told.
        var toldRouteProblems: [String: PluginError] = [:]
        var draining: [Generation] = []
        /// Files of active modules that are gone, and what to tell of them unless they turn out to be renamed.
        var vanished: [String] = []
        /// Paths of files that failed, to be told.
        var failures: [String] = []
        var isLookingAgain = false
        var watcher: FolderWatcher?
        var isStopped = false
        var hasTriedMemory = false
        var memoryPressure: MemoryPressure?
    }

    init(_ configuration: PluginHost.Configuration, dispatcher: Dispatcher) throws(PluginError) {
        self.configuration = configuration
        self.dispatcher = dispatcher
        staging = try Staging(base: configuration.stagingFolder)
        journal = Journal(stateFolder: configuration.stateFolder)
        loader = ModuleLoader(journal: journal, allowsOtherToolchains: configuration.allowsOtherToolchains)
        if configuration.retriesQuarantined { journal.release() }
        queue.setSpecific(key: Self.isOnQueue, value: ObjectIdentifier(self))
    }

    private static let isOnQueue = DispatchSpecificKey<ObjectIdentifier>()

    // MARK: Start, change, stop

    func start() {
        if let problem = journal.problem { state.withLock { $0.otherProblems.append(problem) } }
        if configuration.watches {
            // Watched before it is read, so that nothing can come between.
            let watcher = FolderWatcher(folders: configuration.folders) { [weak self] folders in
                self?.queue.sync { self?.update(folders) }
            }
            watcher.start()
            state.withLock { $0.watcher = watcher }
            if let problem = watcher.problem { state.withLock { $0.otherProblems.append(problem) } }
        }
        watchMemoryIfAwaited()
        queue.sync { update(Set(configuration.folders)) }
        if !configuration.watches { waitForWriters() }
    }

    /// Nobody looks again later: so a file that is being written gets a second.
    private func waitForWriters() {
        for _ in 0..<50 where records.values.contains(where: \.isAwaited) {
            usleep(20_000)
            queue.sync { update(Set(configuration.folders)) }
        }
    }

    /// Reads folders again and does what has become necessary. Runs on the queue.
    private func update(_ folders: Set<String>) {
        guard !state.withLock({ $0.isStopped }) else { return }
        var loaded: [LoadedModule] = []
        for folder in configuration.folders where folders.contains(folder) { loaded += look(into: folder) }
        settle(loaded)
        settleRouteFiles()
        tellFailures()
        tellVanished()
        lookAgain()
    }

    /// Files that are being written are looked at again soon: who writes one through a name in another folder closes it
    /// without the watcher's knowing.
    private func lookAgain() {
        let folders = Set(records.values.filter(\.isAwaited).map(\.folder)).union(foldersOfAwaitedRouteFiles)
        let begins = state.withLock { state in
            guard configuration.watches, !folders.isEmpty, !state.isLookingAgain, !state.isStopped else { return false }
            state.isLookingAgain = true
            return true
        }
        guard begins else { return }
        queue.asyncAfter(deadline: .now() + .milliseconds(200)) { [weak self] in
            self?.state.withLock { $0.isLookingAgain = false }
            self?.update(folders)
        }
    }

    var isStopped: Bool { state.withLock { $0.isStopped } }

    /// Tears everything down, in reverse order, each module after its last call; waits for them within the timeout.
    /// From code that a change itself runs (a log closure, a module's `setUp`) it only begins, and goes on when the
    /// change is done.
    func stop() {
        if DispatchQueue.getSpecific(key: Self.isOnQueue) == ObjectIdentifier(self) {
            return Thread.detachNewThread { self.stop() }
        }
        state.withLock { $0.watcher }?.stop()
        state.withLock { $0.memoryPressure.take() }?.stop()
        queue.sync {
            let isFirst = state.withLock { state in
                defer { state.isStopped = true }
                return !state.isStopped
            }
            guard isFirst else { return }
            var remaining = dispatcher.registry.table.generations
            dispatcher.postHostEvent("host.willTerminate", waitingAtMost: configuration.shutdownTimeout)
            announceStop(to: remaining)
            let deadline = DispatchTime.now() + configuration.shutdownTimeout.dispatchInterval
            for generation in remaining.reversed() {
                remaining.removeLast()
                dispatcher.registry.publish(remaining, isStopped: true)
                tearDown(generation, before: deadline)
                postRemoved(generation)
            }
            dispatcher.registry.publish([], isStopped: true)
            for generation in state.withLock({ $0.draining }) { tearDown(generation, before: deadline) }
            staging.close()
            state.withLock { state in
                for (path, record) in state.records {
                    if case .active(_, let module) = record.state {
                        state.records[path]?.state = .retired(module)
                        state.records[path]?.since = Date()
                    }
                }
            }
        }
        let last = observers.withLock { observers in
            defer { observers = nil }
            return observers ?? [:]
        }
        for observer in last.values { observer.finish() }
    }

    // MARK: Who wants to know

    /// The records, as they are now.
    var records: [String: FileRecord] { state.withLock { $0.records } }

    /// Every file, sorted by path.
    var modules: [ModuleStatus] { records.values.sorted { $0.path < $1.path }.map(\.status) }

    /// What is wrong with folders and with the host's own.
    var problems: [PluginError] {
        state.withLock { state in state.problems.sorted { $0.key < $1.key }.map(\.value) + state.otherProblems }
            + routeProblems
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
