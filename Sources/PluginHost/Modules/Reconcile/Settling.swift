import Foundation
import PluginABI
import PluginFile
import Synchronization

// How what serves is brought into line with what is in the folders. Runs on the lifecycle queue.

extension Lifecycle {
    /// A generation that is being started, and the candidate that it was made of.
    private struct Newcomer {
        let generation: Generation
        let candidate: Plan.Candidate
        var isInitialized = false
        /// From the one that it replaces, when that has given its state.
        var handOver: HandOver?
    }

    /// What is to serve now, and what is not and why.
    var plan: Plan { plan(with: Array(records.values)) }

    /// The same, if the files held this.
    func plan(with records: [FileRecord]) -> Plan {
        let served = state.withLock { $0.served }
        let table = calls.registry.table
        return Plan(
            records, served: served, program: table.generations.filter(\.isInProgram), routes: table.routes)
    }

    /// Makes one change of everything that has become different: newcomers are set up and initialised, unseen by others;
    /// then the next table is published; then they start, and what has left is retired. Who fails on the way is left
    /// out, what served in its place goes on, and everything is planned again without it.
    func settle() {
        defer { journal.endStarts() }
        var newcomers: [ObjectIdentifier: Newcomer] = [:]
        var abandoned: [Generation] = []
        while true {
            let plan = plan
            let planned = Set(plan.serving.map { ObjectIdentifier($0.module) })
            let dropped = newcomers.filter { !planned.contains($0.key) }
            for (key, newcomer) in dropped {
                newcomers[key] = nil
                if let handOver = newcomer.handOver {
                    retire([newcomer.generation])  // It lets go first of what the other one takes back.
                    handOver.undo()
                } else {
                    abandoned.append(newcomer.generation)
                }
            }
            guard start(plan, &newcomers, &abandoned) else { continue }
            commit(plan, newcomers.mapValues(\.generation), newcomers.values.compactMap(\.handOver))
            return retire(abandoned)
        }
    }

    /// `setUp` of all, then the state of those that they replace, then `init` of all, in their order. False when one has
    /// failed.
    private func start(_ plan: Plan, _ newcomers: inout [ObjectIdentifier: Newcomer], _ abandoned: inout [Generation])
        -> Bool
    {
        for candidate in plan.serving where candidate.served == nil {
            let key = ObjectIdentifier(candidate.module)
            guard newcomers[key] == nil else { continue }
            guard let generation = setUp(candidate, &abandoned) else { return false }
            newcomers[key] = Newcomer(generation: generation, candidate: candidate)
        }
        let fresh = plan.serving.map { ObjectIdentifier($0.module) }.filter { newcomers[$0]?.isInitialized == false }
        guard !fresh.isEmpty else { return true }
        let table = calls.registry.table
        let generations = generations(of: plan, newcomers.mapValues(\.generation), table)
        calls.registry.propose(table.changed { $0.generations = generations })
        for key in fresh where !handOver(to: &newcomers[key]!, plan) { return false }
        let failures = initialize(fresh.map { newcomers[$0]!.generation })
        for key in fresh { newcomers[key]?.isInitialized = true }
        for failure in failures {
            let newcomer = newcomers.values.first { $0.generation === failure.generation }!
            fail(newcomer.candidate, failure.error)
        }
        return failures.isEmpty
    }

    /// Makes a generation of a file, and sets it up. Nil when that fails, or when the file had to be loaded anew.
    private func setUp(_ candidate: Plan.Candidate, _ abandoned: inout [Generation]) -> Generation? {
        let module = candidate.module
        if module.isSpent, !module.isLinked {
            reload(candidate.path)
            return nil
        }
        let settings = core.moduleConfiguration.withLock { $0[module.manifest.name] } ?? [:]
        let generation = Generation(module, core: core, configuration: settings)
        module.spend()
        generation.isStarting.store(true, ordering: .relaxed)
        do throws(PluginError) {
            try hooks.activate(generation, timeout: configuration.hookTimeout)
            return generation
        } catch {
            fail(candidate, error)
            abandoned.append(generation)
            return nil
        }
    }

    /// Takes the state from the generation that a newcomer replaces, where both want that. False when that fails.
    private func handOver(to newcomer: inout Newcomer, _ plan: Plan) -> Bool {
        let new = newcomer.generation
        guard newcomer.handOver == nil, let old = plan.leaving.first(where: { $0.name == new.name })?.generation,
            HandOver.isWanted(from: old, to: new)
        else { return true }
        do throws(PluginError) {
            let handOver = try HandOver(from: old, hooks, configuration)
            do throws(PluginError) {
                try handOver.complete(in: new)
                newcomer.handOver = handOver
                return true
            } catch {
                handOver.undo()
                throw error
            }
        } catch {
            fail(newcomer.candidate, error)
            return false
        }
    }

    private func fail(_ candidate: Plan.Candidate, _ error: PluginError) {
        if let record = records[candidate.path] { fail(record, error, candidate.module) }
    }

    /// Runs the `init` of newcomers in their order; asynchronous ones overlap. Returns when all have ended.
    ///
    /// - Returns: Which failed, and why.
    private func initialize(_ newcomers: [Generation]) -> [(generation: Generation, error: PluginError)] {
        var failures: [(generation: Generation, error: PluginError)] = []
        var started: [StartedHook] = []
        for generation in newcomers where generation.hooks["init"] != nil {
            do throws(PluginError) {
                if let hook = try hooks.begin(.`init`, of: generation, timeout: configuration.hookTimeout) {
                    started.append(hook)
                }
            } catch {
                failures.append((generation, error))
            }
        }
        for hook in started {
            do throws(PluginError) { try hook.wait() } catch { failures.append((hook.generation, error)) }
        }
        return failures
    }

    private func generations(
        of plan: Plan, _ newcomers: [ObjectIdentifier: Generation], _ table: Table
    ) -> [Generation] {
        let served = plan.serving.map { $0.served?.generation ?? newcomers[ObjectIdentifier($0.module)]! }
        return (table.generations.filter(\.isInProgram) + served).inOrder
    }

    // MARK: Publication

    private func commit(_ plan: Plan, _ newcomers: [ObjectIdentifier: Generation], _ handOvers: [HandOver]) {
        let before = state.withLock { $0.served }
        let served = plan.serving.map { candidate in
            var served =
                candidate.served
                ?? Served(
                    generation: newcomers[ObjectIdentifier(candidate.module)]!, module: candidate.module,
                    path: candidate.path, since: Date())
            if candidate.isInFolder { served.path = candidate.path }
            return served
        }
        let gone = plan.leaving.filter { leaving in !served.contains { $0.name == leaving.name } }
        let replaced = plan.leaving.filter { leaving in served.contains { $0.name == leaving.name } }
        let retiring = (gone.reversed() + replaced).map(\.generation)
        announceStop(to: gone.reversed().map(\.generation))
        let judged = judged(plan.verdicts)
        let records = records.merging(judged.map { (PathKey($0.path), $0) }) { $1 }
        for leaving in gone { noteDeparture(leaving, reason(of: leaving, records)) }

        if !newcomers.isEmpty || !plan.leaving.isEmpty || !judged.isEmpty || hasNewAbsences {
            let table = calls.registry.table
            calls.registry.publish(
                generations(of: plan, newcomers, table), absences: absences(served, records))
        }
        // Only now: who sees in the status what serves can call it.
        state.withLock { state in
            for record in judged { state.records[record.path] = record }
            state.served = Dictionary(served.map { ($0.name, $0) }, uniquingKeysWith: { first, _ in first })
            state.leaving = retiring.map { Draining(generation: $0) }
        }
        for generation in newcomers.values { generation.isStarting.store(false, ordering: .relaxed) }
        calls.registry.propose(nil)
        for handOver in handOvers { handOver.finish() }

        let started = served.filter { newcomer in newcomers.values.contains { $0 === newcomer.generation } }
        for newcomer in started { tell(change(to: newcomer, before[newcomer.name])) }
        for leaving in gone {
            tell(.removed(GenerationStatus(leaving.generation, .draining), reason(of: leaving, records)))
        }
        judged.compactMap(\.verdictChange).forEach(tell)
        watchMemoryIfAwaited()
        announceStart(to: started.map(\.generation))
        announceMissedEvents(to: started.map(\.generation))
        for newcomer in started {
            let (generation, predecessor) = (newcomer.generation, before[newcomer.name]?.generation)
            announce(predecessor == nil ? "module.added" : "module.replaced") { [calls] in
                calls.postAdded(generation, insteadOf: predecessor)
            }
        }
        for generation in gone.map(\.generation) {
            announce("module.removed") { [calls] in calls.postRemoved(generation) }
        }
        announceStop(to: replaced.map(\.generation))
        keepVersions(of: plan.leaving)
        retire(retiring)
    }

    private func change(to newcomer: Served, _ before: Served?) -> HostChange {
        let status = records[newcomer.path]!.status(newcomer)
        guard let before else { return .added(status) }
        return .replaced(status, GenerationStatus(before.generation, .draining))
    }

    /// The records of which something else is decided than before, with that.
    private func judged(_ verdicts: [PathKey: FileRecord.Verdict]) -> [FileRecord] {
        let records = records
        let changed = verdicts.compactMap { path, verdict -> FileRecord? in
            guard var record = records[path], !record.verdict.isSame(as: verdict) else { return nil }
            record.verdict = verdict
            record.since = Date()
            return record
        }
        return changed.sorted { PathKey($0.path) < PathKey($1.path) }
    }

    // MARK: Who is not there

    /// Remembers the last modules that have gone, for errors.
    private func noteDeparture(_ leaving: Served, _ reason: String) {
        state.withLock { state in
            state.departed.removeAll { $0.manifest.name == leaving.name }
            state.departed.append((leaving.module.manifest, reason))
            if state.departed.count > 1000 { state.departed.removeFirst() }
        }
    }

    private func reason(of leaving: Served, _ records: [PathKey: FileRecord]) -> String {
        if let waiting = records.values.first(where: { $0.module?.manifest.name == leaving.name }),
            let error = waiting.error
        {
            return error.message
        }
        return "it was removed: \(leaving.path) is gone."
    }

    private var hasNewAbsences: Bool {
        state.withLock { state in
            defer { state.hasNewAbsentees = false }
            return state.hasNewAbsentees
        }
    }

    private func absences(_ served: [Served], _ records: [PathKey: FileRecord]) -> Absences {
        let names = Set(served.map(\.name))
        let departed = state.withLock { $0.departed }
        var absences = Absences()
        for (manifest, reason) in departed where !names.contains(manifest.name) { absences.add(manifest, reason) }
        let refused = records.values.filter { $0.error != nil }.sorted { PathKey($0.path) < PathKey($1.path) }
        for record in refused {
            guard let manifest = record.claimedModule?.manifest, !names.contains(manifest.name),
                let error = record.error
            else { continue }
            absences.add(manifest, error.message)
        }
        return absences
    }
}

extension FileRecord {
    /// What is to be told of a file that does not serve.
    fileprivate var verdictChange: HostChange? {
        switch verdict {
        case .superseded: .superseded(status(nil))
        case .waits: .waiting(status(nil))
        case .refused: .failed(status(nil))
        case .undecided, .serves, .ended: nil
        }
    }
}

extension FileRecord.Verdict {
    func isSame(as other: Self) -> Bool {
        switch (self, other) {
        case (.undecided, .undecided), (.serves, .serves), (.ended, .ended): true
        case (.superseded(let a), .superseded(let b)): a == b
        case (.waits(let a), .waits(let b)), (.refused(let a), .refused(let b)): a == b
        default: false
        }
    }
}
