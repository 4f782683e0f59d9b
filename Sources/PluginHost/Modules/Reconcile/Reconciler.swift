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
    struct Newcomer: Sendable {
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
    /// The name of the registered module that is to start.
    private let wanted: String?
    /// The generations whose `willStop` was called.
    private var told: Set<Int> = []

    init(_ context: ChangeContext, _ change: ProgramChange? = nil) {
        (self.context, self.change) = (context, change)
        wanted = nil
    }

    /// Creates a reconciliation that starts a registered module.
    init(_ context: ChangeContext, starting name: String) { (self.context, wanted) = (context, name) }

    /// Starts a registered module, and those that it requires, while another change waits for code of a module. Nothing
    /// else changes.
    ///
    /// - Throws: `circularWait` if the module requires one that another change is starting.
    static func startNested(_ name: String, _ context: ChangeContext) throws(PluginError) {
        var reconciler = Reconciler(context, starting: name)
        var failure: PluginError?
        reconciler.startNested(name, &failure)
        if let failure { throw failure }
    }

    private mutating func startNested(_ name: String, _ failure: inout PluginError?) {
        let (batch, before) = (context.starts.batch, context.proposed)
        var isPublished = false
        context.unpublished += 1
        while true {
            var next: Plan?
            do throws(PluginError) {
                next = try context.plan().starting(name, besides: context, busy: batch)
            } catch {
                failure = error
            }
            guard let plan = next else { break }
            abandonFailed(plan)
            context.proposed = before
            context.starts.batch = batch.union(plan.fresh)
            guard start(plan) else { continue }
            context.unpublished -= 1
            // The modules that the outer change starts see what was started, also by starts within this one.
            let started = context.serving.all.map(\.generation) + newcomers.values.map(\.generation)
            Publication(context, plan, newcomers).make(within: before?.with(started))
            context.nestedStarts += 1
            isPublished = true
            newcomers = [:]
            break
        }
        if !isPublished {
            context.unpublished -= 1
            context.proposed = before
            context.propose()
        }
        context.starts.batch = batch
        abandoned += newcomers.values.map(\.generation)
        Drain(context: context).retire(abandoned)
    }

    /// Abandons the newcomers that are not in a plan.
    private mutating func abandonFailed(_ plan: Plan) {
        let planned = plan.fresh
        for (key, newcomer) in newcomers where !planned.contains(key) {
            newcomers[key] = nil
            abandoned.append(newcomer.generation)
        }
    }

    private var configuration: HostConfiguration { context.configuration }

    /// Applies all differences.
    ///
    /// - Returns: The reason why the module that the program registers does not serve; otherwise `nil`.
    @discardableResult
    mutating func reconcile() -> PluginError? {
        defer {
            context.starts.batch = []
            context.disk?.journal.endStarts()
        }
        context.patience.renew()
        context.unpublished += 1
        takeReturned()
        while true {
            context.publish()
            let nestedStarts = context.nestedStarts
            context.proposed = nil
            let plan = context.plan(change, starting: wanted)
            abandonUnwanted(plan)
            dropAllBut(plan)
            tellStarts(plan)
            guard start(plan) else { continue }
            tellStop(plan)
            guard context.nestedStarts == nestedStarts else { continue }
            context.unpublished -= 1
            Publication(context, plan, newcomers).make()
            Drain(context: context).retire(abandoned)
            if wanted == nil { context.resumeStartsLater() }
            return refusal ?? plan.refusal
        }
    }

    // MARK: Hooks that do not return in time

    /// Goes on with the starts that earlier changes went on without, if their hooks have returned.
    private mutating func takeReturned() {
        newcomers = context.starts.parked
        context.starts.parked = [:]
        for (key, start) in context.starts.slow {
            guard let outcome = start.outcome else { continue }
            context.starts.slow[key] = nil
            newcomers[key] = start.newcomer
            if case .failure(let error) = outcome { fail(start.newcomer.candidate, error) }
        }
        context.starts.resumed = newcomers.values.map(\.generation)
    }

    /// Abandons the modules whose hooks have not returned and which would not serve if they had: their files have
    /// changed or are gone, or other files are preferred.
    private func abandonUnwanted(_ plan: Plan) {
        for (key, start) in context.starts.slow {
            let record = context.folders.records[start.newcomer.candidate.path]
            if let record, record.loaded?.module === start.newcomer.candidate.module,
                record.isAwaited || plan.isStarting(record.path)
            {
                continue
            }
            context.starts.slow[key] = nil
            start.abandon(because: record == nil ? "was removed" : "was replaced")
            context.resumeStartsLater()
        }
    }

    /// Runs `willStop` of the modules that are removed without replacement, once for each.
    private mutating func tellStop(_ plan: Plan) {
        let gone = plan.gone.map(\.generation).filter { !told.contains($0.number) }
        told.formUnion(gone.map(\.number))
        context.hooks.announceStop(to: gone)
    }

    /// Lets other threads know which modules are being started.
    private func tellStarts(_ plan: Plan) {
        let fresh = plan.fresh
        guard context.starts.batch != fresh else { return }
        context.starts.batch = fresh
        context.publish()
    }

    /// Goes on without a newcomer whose hook has not returned in time.
    ///
    /// - Parameters:
    ///   - time: How long the change has waited for the hook.
    ///   - change: Changes the newcomer to its state after the hook has returned.
    /// - Returns: What to do with the hook's result.
    private mutating func leave(
        _ newcomer: Newcomer, after time: Duration, then change: (inout Newcomer) -> Void
    ) -> @Sendable (Result<Void, PluginError>) -> Void {
        let code = newcomer.generation.startingCode.withLock { $0 } ?? (name: "start", begin: monotonicNow())
        var later = newcomer
        change(&later)
        newcomers[ObjectIdentifier(newcomer.candidate.module)] = nil
        return context.leave(SlowStart(later, code.name, since: code.begin), after: time)
    }

    /// Whether the host waits for the `init` of a newcomer until its timeout: the program waits for the outcome, or calls
    /// wait for the end of a hand-over, which must end within this change.
    private func isAwaited(_ newcomer: Newcomer) -> Bool {
        newcomer.candidate.module.isRegistered || newcomer.handOver != nil
    }

    // MARK: Steps

    /// Abandons newcomers that are not in the new plan. Those that require a module whose hook has not returned are
    /// kept as they are.
    private mutating func dropAllBut(_ plan: Plan) {
        let planned = Set(plan.serving.map { ObjectIdentifier($0.module) })
        for (key, newcomer) in newcomers where !planned.contains(key) {
            newcomers[key] = nil
            if newcomer.handOver == nil, plan.isStarting(newcomer.candidate.path),
                context.folders.records[newcomer.candidate.path]?.module === newcomer.candidate.module
            {
                newcomer.generation.isLate.store(true, ordering: .relaxed)
                context.starts.parked[key] = newcomer
                continue
            }
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
        let nestedStarts = context.nestedStarts
        let known = plan.serving.filter { $0.served == nil && !$0.module.isOpen }
        guard known.isEmpty else {
            FileScan(context: context).openKnown(known.map(\.path))
            return false
        }
        for candidate in plan.serving where candidate.served == nil {
            let key = ObjectIdentifier(candidate.module)
            guard newcomers[key] == nil else { continue }
            guard let generation = setUp(candidate) else { return false }
            newcomers[key] = Newcomer(generation: generation, candidate: candidate)
        }
        let fresh = plan.serving.map { ObjectIdentifier($0.module) }.filter { newcomers[$0]?.isInitialized == false }
        guard !fresh.isEmpty else { return true }
        guard context.nestedStarts == nestedStarts else { return false }
        context.proposed = Proposed(plan, newcomers, besides: context)
        context.propose()
        // Before the first calls are blocked, since this code may make calls to modules that hand over their states.
        for key in fresh {
            let patience = context.hooks.patienceWithOthers
            guard let old = predecessor(of: key, plan), !waitForStart(of: old, patience) else { continue }
            leave(newcomers[key]!, behind: old, after: patience)
            return false
        }
        for key in fresh where !handOver(to: key, plan) { return false }
        return initialize(fresh)
    }

    /// Waits for `didStart`, and the delivery of missed events, of a module that is to hand over its state. Returns false
    /// if they have not ended in time: the change then goes on without the successor.
    private func waitForStart(of old: Generation, _ patience: Duration) -> Bool {
        if old.waitForCodeAfterStart(within: patience) || context.hooks.waitsForAll { return true }
        context.patience.end()
        return false
    }

    /// Goes on without a newcomer, since the module that is to hand over its state to it is still starting.
    private mutating func leave(_ newcomer: Newcomer, behind old: Generation, after patience: Duration) {
        newcomers[ObjectIdentifier(newcomer.candidate.module)] = nil
        let code = old.startingCode.withLock { $0 } ?? (name: "didStart", begin: monotonicNow())
        let name = code.name == "didStart" ? code.name : "delivery of sticky events"
        let start = SlowStart(newcomer, "predecessor's \(name)", since: code.begin, isOfPredecessor: true)
        let late = context.leave(start, after: patience)
        // That code has a timeout of its own, after which the wait ends.
        ThreadPool.shared.run {
            _ = old.waitForCodeAfterStart(within: .seconds(1e9))
            late(.success(()))
        }
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
        let hooks = context.hooks
        let late = LateOutcome()
        let patience = hooks.patience
        let outcome = hooks.attempt(isAwaited: module.isRegistered) {
            Result { () throws(PluginError) in try hooks.activate(generation) }
        } late: {
            late.take($0)
        }
        switch outcome {
        case .success?: return generation
        case .failure(let error)?:
            fail(candidate, error)
            abandoned.append(generation)
        case nil: late.go(leave(Newcomer(generation: generation, candidate: candidate), after: patience) { _ in })
        }
        return nil
    }

    /// Returns the generation that is to hand over its state to a newcomer; `nil` if it has done so, or there is none
    /// that does.
    private func predecessor(of key: ObjectIdentifier, _ plan: Plan) -> Generation? {
        let new = newcomers[key]!.generation
        guard newcomers[key]!.handOver == nil,
            let old = plan.leaving.first(where: { $0.name == new.name })?.generation, !old.hasCrashed,
            HandOver.isWanted(from: old, to: new)
        else { return nil }
        return old
    }

    /// Hands over the state from the generation that a newcomer replaces, if both support that. Returns false on
    /// failure.
    private mutating func handOver(to key: ObjectIdentifier, _ plan: Plan) -> Bool {
        guard let old = predecessor(of: key, plan) else { return true }
        let new = newcomers[key]!.generation
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

    /// Runs `init` of newcomers in their order, up to the first that has not ended in time: those after it may require
    /// it. Asynchronous functions overlap. Returns when those that were called have ended, or have not ended in time.
    /// Returns false if the plan must be made again.
    private mutating func initialize(_ fresh: [ObjectIdentifier]) -> Bool {
        var failures: [(candidate: Plan.Candidate, error: PluginError)] = []
        var started: [(key: ObjectIdentifier, hook: StartedHook)] = []
        let hooks = context.hooks
        var isComplete = true
        var called = fresh[...]
        for (index, key) in fresh.enumerated() where newcomers[key]!.generation.hooks["init"] != nil {
            let newcomer = newcomers[key]!
            let (generation, timeout) = (newcomer.generation, configuration.hookTimeout)
            let late = LateOutcome()
            let patience = hooks.patience
            let outcome = hooks.attempt(isAwaited: isAwaited(newcomer)) {
                Result { () throws(PluginError) in try hooks.begin(.`init`, of: generation, timeout: timeout) }
            } late: { outcome in
                late.take(Result { () throws(PluginError) in try outcome.get()?.waitForStart() })
            }
            switch outcome {
            case .success(let hook)?: if let hook { started.append((key, hook)) }
            case .failure(let error)?: failures.append((newcomer.candidate, error))
            case nil:
                isComplete = false
                late.go(leave(newcomer, after: patience) { $0.isInitialized = true })
                called = fresh[...index]
            }
            guard isComplete else { break }
        }
        for (key, hook) in started {
            let newcomer = newcomers[key]!
            let patience = hooks.patience
            guard isAwaited(newcomer) || hook.endsSoon() else {
                isComplete = false
                let late = leave(newcomer, after: patience) { $0.isInitialized = true }
                ThreadPool.shared.run {
                    late(Result { () throws(PluginError) in try hook.waitForStart() })
                }
                continue
            }
            do throws(PluginError) { try hook.waitForStart() } catch { failures.append((newcomer.candidate, error)) }
        }
        for key in called {
            newcomers[key]?.isInitialized = true
            guard let newcomer = newcomers[key],
                !failures.contains(where: { $0.candidate.module === newcomer.candidate.module }),
                let crash = newcomer.generation.crash(in: "init")
            else { continue }
            failures.append((newcomer.candidate, crash))
        }
        for failure in failures { fail(failure.candidate, failure.error) }
        return isComplete && failures.isEmpty
    }
}

extension StartedHook {
    /// Waits for the end of a hook that is part of the start.
    ///
    /// - Throws: The error of the hook; `moduleCrashed` if the module's process has ended.
    fileprivate func waitForStart() throws(PluginError) {
        try wait()
        if let crash = generation.crash(in: hook.rawValue) { throw crash }
    }
}

extension Plan {
    /// The modules that start.
    fileprivate var fresh: Set<ObjectIdentifier> {
        Set(serving.filter { $0.served == nil }.map { ObjectIdentifier($0.module) })
    }

    /// The modules that are removed without replacement, in reverse order.
    var gone: [Served] {
        let names = Set(serving.map(\.manifest.name))
        return leaving.filter { !names.contains($0.name) }.reversed()
    }

    /// Returns whether the module in a file waits only for a hook that has not returned yet.
    func isStarting(_ path: String) -> Bool { if case .starts = verdicts[path] { true } else { false } }

    /// Returns the generations that will be in the table, in order.
    func generations(with newcomers: [ObjectIdentifier: Reconciler.Newcomer]) -> [Generation] {
        serving.map { $0.served?.generation ?? newcomers[ObjectIdentifier($0.module)]!.generation }.inOrder
    }
}
