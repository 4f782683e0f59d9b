import Dispatch
import Foundation
import PluginABI
import Synchronization

// Which file of a module serves, and how a newcomer comes to serve. Runs on the lifecycle queue.

extension Lifecycle {
    /// Chooses for each module name the file that serves, sets the newcomers up, publishes the next table, and starts
    /// them.
    ///
    /// What serves depends on what is in the folders, never on the order in which it arrived: the highest version, of
    /// equal ones the file name that sorts first.
    func settle(_ loaded: [LoadedModule]) {
        guard !loaded.isEmpty else { return }
        var generations = dispatcher.registry.table.generations
        var newcomers: [Newcomer] = []
        var changes: [HostChange] = []
        for name in namesInOrder(loaded) {
            adoptMoved(name)
            let candidates = candidates(name)
            let active = candidates.first { $0.generation != nil && !$0.isGone }
            let before = candidates.first { $0.generation != nil }
            var newcomer: Newcomer?
            var stepped: [HostChange] = []
            var serving: FileRecord?
            for candidate in candidates where candidate.path != serving?.path {
                // The same again, under a name that sorts first, is no reason to start anew.
                if serving == nil, let active, isSame(candidate, active) { serving = active }
                if let serving {
                    guard candidate.path != serving.path else { continue }
                    if let change = stepBack(candidate, behind: serving) { stepped.append(change) }
                } else if candidate.generation != nil {
                    serving = candidate
                } else if let generation = activate(candidate, among: generations) {
                    newcomer = Newcomer(generation: generation, path: candidate.path, predecessor: before)
                    generations.removeAll { $0.name == name }
                    generations.append(generation)
                    serving = records[candidate.path]
                }
            }
            newcomer?.stepped = stepped
            if let newcomer { newcomers.append(newcomer) } else { changes += stepped }
        }
        dispatcher.registry.publish(generations.inOrder)
        changes.forEach(tell)
        watchMemoryIfAwaited()
        start(newcomers, sticky: dispatcher.events.sticky)
    }

    /// A generation that was set up and published, and is not started yet.
    private struct Newcomer {
        let generation: Generation
        let path: String
        /// The file whose generation served before.
        let predecessor: FileRecord?
        /// What is to be told of the other files of the module.
        var stepped: [HostChange] = []
    }

    /// Initialises newcomers. Who fails goes again, and what served before serves on; the others start.
    private func start(_ newcomers: [Newcomer], sticky: [EventBoard.StickyEvent]) {
        let failures = initialize(newcomers.map(\.generation))
        for failure in failures {
            withdraw(newcomers.first { $0.generation === failure.generation }!, failure.error)
        }
        let started = newcomers.filter { newcomer in !failures.contains { $0.generation === newcomer.generation } }
        for newcomer in started {
            if let record = records[newcomer.path] { tell(.added(record.status)) }
            newcomer.stepped.forEach(tell)
        }
        announceStart(to: started.map(\.generation))
        deliverSticky(sticky, to: started.map(\.generation))
        for newcomer in started { postAdded(newcomer.generation, insteadOf: newcomer.predecessor?.generation) }
        let replaced = started.compactMap(\.predecessor?.generation)
        announceStop(to: replaced)
        retire(replaced + failures.map(\.generation))
        // Another file of the module may serve in its place.
        settle(
            failures.flatMap { failure in
                let others = candidates(failure.generation.name)
                return others.contains { $0.generation != nil } ? [] : others.compactMap(\.module)
            })
    }

    /// Takes a module out whose `init` has failed.
    private func withdraw(_ newcomer: Newcomer, _ error: PluginError) {
        let failed = newcomer.generation
        var generations = dispatcher.registry.table.generations.filter { $0 !== failed }
        if let record = records[newcomer.path] { fail(record, error) }
        if let predecessor = newcomer.predecessor, let generation = predecessor.generation {
            generations.append(generation)
            put(predecessor)
        }
        dispatcher.registry.publish(generations.inOrder)
    }

    /// The names of the modules in the order in which they have their turn.
    private func namesInOrder(_ loaded: [LoadedModule]) -> [String] {
        Set(loaded.map(\.manifest.name))
            .compactMap { candidates($0).first?.module.map { ModuleOrder($0.manifest) } }
            .sorted().map(\.name)
    }

    /// The files of a module, the one that should serve first.
    private func candidates(_ name: String) -> [FileRecord] {
        records.values.filter { $0.module?.manifest.name == name }.sorted { left, right in
            if left.isGone != right.isGone { return right.isGone }
            let (a, b) = (left.module!.manifest.version, right.module!.manifest.version)
            if a != b { return a > b }
            return (left.fileName, left.path) < (right.fileName, right.path)
        }
    }

    /// A file that was renamed while its module runs: the module goes on under the new name.
    private func adoptMoved(_ name: String) {
        let files = candidates(name)
        guard let gone = files.first(where: { $0.isGone }), case .active(let generation, let module) = gone.state,
            var heir = files.first(where: { !$0.isGone && isSame($0, gone) })
        else { return }
        heir.state = .active(generation, module)
        state.withLock { $0.records[gone.path] = nil }
        put(heir)
    }

    private func isSame(_ left: FileRecord, _ right: FileRecord) -> Bool {
        guard let a = left.module, let b = right.module else { return false }
        return a.manifest.version == b.manifest.version && (try? Staging.sameBytes(a.staged, b.staged)) == true
    }

    /// Takes a file out of service, or never lets it in, because another one of its module serves.
    /// Returns nil where that is so already.
    private func stepBack(_ record: FileRecord, behind serving: FileRecord) -> HostChange? {
        guard let module = record.module, let other = serving.module else { return nil }
        var record = record
        if record.isGone {
            state.withLock { $0.records[record.path] = nil }
        } else if module.manifest.version == other.manifest.version, !isSame(record, serving) {
            let version = module.manifest.version
            record.state = .failed(
                PluginError(
                    .conflict,
                    "\(record.path) and \(serving.path) are both \(module.manifest.name) \(version), with different "
                        + "content. \(serving.fileName) serves, because its name sorts first; give one of them another "
                        + "version, or delete it."))
            put(record)
            return .failed(record.status)
        } else {
            if case .superseded(_, serving.path) = record.state { return nil }
            record.state = .superseded(module, by: serving.path)
            record.since = Date()
            put(record)
        }
        return .superseded(record.status)
    }

    /// Makes a generation of a file and activates it. nil when that fails; the record says why.
    private func activate(_ record: FileRecord, among generations: [Generation]) -> Generation? {
        guard let module = record.module else { return nil }
        do throws(PluginError) {
            try dispatcher.checkConflicts(module, with: generations)
            let settings = dispatcher.moduleConfiguration.withLock { $0[module.manifest.name] } ?? [:]
            let generation = Generation(module, dispatcher: dispatcher, configuration: settings)
            try loader.during(.activation, module.staged) { () throws(PluginError) in
                try generation.activate(timeout: configuration.hookTimeout)
            }
            var record = record
            record.state = .active(generation, module)
            record.since = Date()
            put(record)
            return generation
        } catch {
            fail(record, error)
            return nil
        }
    }

    /// Tears generations down when their last call has ended and nobody holds an object of them.
    func retire(_ replaced: [Generation]) {
        guard !replaced.isEmpty else { return }
        state.withLock { $0.draining += replaced }
        tearDownDrained()
    }

    private func tearDownDrained() {
        for generation in state.withLock({ $0.draining }) where generation.isDrained {
            state.withLock { $0.draining.removeAll { $0 === generation } }
            tearDown(generation, before: .now() + configuration.shutdownTimeout.dispatchInterval)
        }
        guard state.withLock({ !$0.draining.isEmpty && !$0.isStopped }) else { return }
        queue.asyncAfter(deadline: .now() + .milliseconds(20)) { [weak self] in self?.tearDownDrained() }
    }
}

extension FileRecord {
    fileprivate var isGone: Bool { reported == .deleted }
    fileprivate var fileName: String { (path as NSString).lastPathComponent }
}

extension Generation {
    var isDrained: Bool { callsInFlight == 0 && objectCount.load(ordering: .relaxed) == 0 }
}
