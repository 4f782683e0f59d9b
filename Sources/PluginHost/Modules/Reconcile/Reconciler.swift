import PluginABI
import PluginFile
import Synchronization

/// What the program itself changes.
enum ProgramChange {
    case registers(LoadedModule)
    case unregisters(Served)
}

/// Brings what serves into line with what is there: in the folders, linked into the program, registered by it.
///
/// Makes one change of everything that has become different: newcomers are set up and initialised, unseen by others;
/// then the next table is published; then they start, and what has left is retired. Who fails on the way is left out, what
/// served in its place goes on, and everything is planned again without it.
struct Reconciler {
    /// A generation that is being started, and the candidate that it was made of.
    struct Newcomer {
        let generation: Generation
        let candidate: Plan.Candidate
        var isInitialized = false
        /// From the one that it replaces, when that has given its state.
        var handOver: HandOver?
    }

    let context: ChangeContext
    private var change: ProgramChange?
    private var newcomers: [ObjectIdentifier: Newcomer] = [:]
    private var abandoned: [Generation] = []
    /// Why what the program registers does not serve.
    private var refusal: PluginError?

    init(_ context: ChangeContext, _ change: ProgramChange? = nil) { (self.context, self.change) = (context, change) }

    private var configuration: HostConfiguration { context.configuration }

    /// - Returns: Why what the program registers does not serve.
    @discardableResult
    mutating func reconcile() -> PluginError? {
        defer { context.disk?.journal.endStarts() }
        while true {
            context.publish()
            let plan = context.plan(change)
            dropAllBut(Set(plan.serving.map { ObjectIdentifier($0.module) }))
            guard start(plan) else { continue }
            Publication(context, plan, newcomers).make()
            Drain(context: context).retire(abandoned)
            return refusal ?? plan.refusal
        }
    }

    /// Gives up newcomers that are not to serve after all.
    private mutating func dropAllBut(_ planned: Set<ObjectIdentifier>) {
        for (key, newcomer) in newcomers where !planned.contains(key) {
            newcomers[key] = nil
            if let handOver = newcomer.handOver {
                // It lets go first of what the other one takes back.
                Drain(context: context).retire([newcomer.generation])
                handOver.undo()
            } else {
                abandoned.append(newcomer.generation)
            }
        }
    }

    /// `setUp` of all, then the state of those that they replace, then `init` of all, in their order. False when one has
    /// failed.
    private mutating func start(_ plan: Plan) -> Bool {
        for candidate in plan.serving where candidate.served == nil {
            let key = ObjectIdentifier(candidate.module)
            guard newcomers[key] == nil else { continue }
            guard let generation = setUp(candidate) else { return false }
            newcomers[key] = Newcomer(generation: generation, candidate: candidate)
        }
        let fresh = plan.serving.map { ObjectIdentifier($0.module) }.filter { newcomers[$0]?.isInitialized == false }
        guard !fresh.isEmpty else { return true }
        let generations = plan.generations(with: newcomers)
        context.registry.propose(context.registry.table.changed { $0.generations = generations })
        for key in fresh where !handOver(to: key, plan) { return false }
        let failures = initialize(fresh.map { newcomers[$0]!.generation })
        for key in fresh { newcomers[key]?.isInitialized = true }
        for failure in failures {
            fail(newcomers.values.first { $0.generation === failure.generation }!.candidate, failure.error)
        }
        return failures.isEmpty
    }

    /// Makes a generation of a candidate, and sets it up. Nil when that fails, or when a file had to be loaded anew.
    private mutating func setUp(_ candidate: Plan.Candidate) -> Generation? {
        let module = candidate.module
        if module.isSpent, module.isOfFile {
            FileScan(context: context).reload(candidate.path)
            return nil
        }
        let settings = context.core.moduleConfiguration.withLock { $0[module.manifest.name] } ?? [:]
        let generation = Generation(module, core: context.core, configuration: settings)
        module.spend()
        generation.isStarting.store(true, ordering: .relaxed)
        do throws(PluginError) {
            try context.hooks.activate(generation)
            return generation
        } catch {
            fail(candidate, error)
            abandoned.append(generation)
            return nil
        }
    }

    /// Takes the state from the generation that a newcomer replaces, where both want that. False when that fails.
    private mutating func handOver(to key: ObjectIdentifier, _ plan: Plan) -> Bool {
        let new = newcomers[key]!.generation
        guard newcomers[key]!.handOver == nil,
            let old = plan.leaving.first(where: { $0.name == new.name })?.generation,
            HandOver.isWanted(from: old, to: new)
        else { return true }
        do throws(PluginError) {
            let handOver = try HandOver(from: old, context.hooks)
            do throws(PluginError) {
                try handOver.complete(in: new)
                newcomers[key]!.handOver = handOver
                return true
            } catch {
                handOver.undo()
                throw error
            }
        } catch {
            fail(newcomers[key]!.candidate, error)
            return false
        }
    }

    private mutating func fail(_ candidate: Plan.Candidate, _ error: PluginError) {
        if candidate.module.isRegistered {
            (refusal, change) = (error, nil)
        } else if let record = context.folders.records[candidate.path] {
            context.folders.fail(record, error, candidate.module)
        }
    }

    /// Runs the `init` of newcomers in their order; asynchronous ones overlap. Returns when all have ended.
    ///
    /// - Returns: Which failed, and why.
    private func initialize(_ newcomers: [Generation]) -> [(generation: Generation, error: PluginError)] {
        var failures: [(generation: Generation, error: PluginError)] = []
        var started: [StartedHook] = []
        for generation in newcomers where generation.hooks["init"] != nil {
            do throws(PluginError) {
                let hook = try context.hooks.begin(.`init`, of: generation, timeout: configuration.hookTimeout)
                if let hook { started.append(hook) }
            } catch {
                failures.append((generation, error))
            }
        }
        for hook in started {
            do throws(PluginError) { try hook.wait() } catch { failures.append((hook.generation, error)) }
        }
        return failures
    }
}

extension Plan {
    /// What will be in the table, in order.
    func generations(with newcomers: [ObjectIdentifier: Reconciler.Newcomer]) -> [Generation] {
        serving.map { $0.served?.generation ?? newcomers[ObjectIdentifier($0.module)]!.generation }.inOrder
    }
}
