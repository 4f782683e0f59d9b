import PluginABI
import PluginFile
import Synchronization

/// A change that the program makes.
enum ProgramChange {
    case registers(LoadedModule)
    case unregisters(Served)
}

/// A reconciliation: brings what serves in line with the modules that are in the folders, linked into the program, or
/// registered by it.
///
/// All differences are applied as one change: new generations are set up and initialised, not yet visible to others;
/// then the next table is published; then they are started, and generations that no longer serve are retired. If a new
/// generation fails, its predecessor continues to serve, and everything is planned again without the new one.
struct Reconciler {
    /// A generation that is being started, and the candidate that it was created from.
    struct Newcomer {
        let generation: Generation
        let candidate: Plan.Candidate
        var isInitialized = false
        /// The hand-over from the generation that it replaces, once that has handed over its state.
        var handOver: HandOver?
    }

    let context: ChangeContext
    private var change: ProgramChange?
    private var newcomers: [ObjectIdentifier: Newcomer] = [:]
    private var abandoned: [Generation] = []
    /// The files that were loaded again because their processes had ended before they were to be started.
    private var revived: Set<PathKey> = []
    /// The reason why the module that the program registers does not serve.
    private var refusal: PluginError?

    init(_ context: ChangeContext, _ change: ProgramChange? = nil) { (self.context, self.change) = (context, change) }

    private var configuration: HostConfiguration { context.configuration }

    /// Applies all differences.
    ///
    /// - Returns: The reason why the module that the program registers does not serve; otherwise `nil`.
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

    /// Abandons newcomers that are not in the new plan.
    private mutating func dropAllBut(_ planned: Set<ObjectIdentifier>) {
        for (key, newcomer) in newcomers where !planned.contains(key) {
            newcomers[key] = nil
            if let handOver = newcomer.handOver {
                // The newcomer must release its resources before its predecessor acquires them again.
                Drain(context: context).retire([newcomer.generation])
                handOver.undo()
            } else {
                abandoned.append(newcomer.generation)
            }
        }
    }

    /// Runs `setUp` of all new generations, then hands over the state of those that they replace, then runs `init` of
    /// all, each in the order of the plan. Returns false if the plan must be made again because something failed or a
    /// file was reloaded.
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

    /// Creates a generation of a candidate and sets it up. Returns `nil` if that fails, or if its file had to be loaded
    /// again.
    private mutating func setUp(_ candidate: Plan.Candidate) -> Generation? {
        let module = candidate.module
        var isUsedUp = module.isSpent
        if module.hasEnded, !isUsedUp { isUsedUp = revived.insert(PathKey(candidate.path)).inserted }
        if isUsedUp, module.isOfFile {
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

    /// Hands over the state from the generation that a newcomer replaces, if both support that. Returns false on
    /// failure.
    private mutating func handOver(to key: ObjectIdentifier, _ plan: Plan) -> Bool {
        let new = newcomers[key]!.generation
        guard newcomers[key]!.handOver == nil,
            let old = plan.leaving.first(where: { $0.name == new.name })?.generation, !old.hasCrashed,
            HandOver.isWanted(from: old, to: new)
        else { return true }
        do throws(PluginError) {
            let handOver = try HandOver(from: old, context.hooks)
            do throws(PluginError) {
                try handOver.complete(in: new)
                newcomers[key]!.handOver = handOver
                old.hasHandedOver.store(true, ordering: .relaxed)
                return true
            } catch {
                handOver.undo()
                throw error
            }
        } catch {
            // Nothing is left of a module whose process has crashed: its successor starts without a state.
            guard !old.hasCrashed else {
                new.log(.warning, "starts without the state of its predecessor: \(error.message)")
                return true
            }
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

    /// Runs `init` of newcomers in their order. Asynchronous functions overlap. Returns when all have ended.
    ///
    /// - Returns: The generations that failed, with their errors.
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
        for generation in newcomers where !failures.contains(where: { $0.generation === generation }) {
            if let crash = generation.crash(in: "init") { failures.append((generation, crash)) }
        }
        return failures
    }
}

extension Plan {
    /// Returns the generations that will be in the table, in order.
    func generations(with newcomers: [ObjectIdentifier: Reconciler.Newcomer]) -> [Generation] {
        serving.map { $0.served?.generation ?? newcomers[ObjectIdentifier($0.module)]!.generation }.inOrder
    }
}
