import PluginABI
import PluginFile
import Synchronization

/// A generation that is being started, and the candidate that it was created from.
struct Newcomer: Sendable {
    let generation: Generation
    let candidate: Plan.Candidate
    var isInitialized = false
    /// The hand-over from the generation that it replaces, once that has handed over its state.
    var handOver: HandOver?
}

/// The generations that one change starts, and the steps of their start.
struct Newcomers {
    private let context: ChangeContext
    private(set) var all: [ObjectIdentifier: Newcomer] = [:]
    /// The generations that are torn down after the change, because something has failed.
    private(set) var abandoned: [Generation] = []
    /// The files that were loaded again because their processes had ended before their modules were started.
    private var revived: Set<PathKey> = []
    /// The reason why the module that the program registers does not serve.
    private(set) var refusal: PluginError?

    init(_ context: ChangeContext) { self.context = context }

    /// Adds a newcomer whose start an earlier change has begun.
    mutating func add(_ newcomer: Newcomer) { all[ObjectIdentifier(newcomer.candidate.module)] = newcomer }

    /// Abandons newcomers that are not in a plan.
    ///
    /// - Parameter isParked: Whether a newcomer is kept as it is, because it waits only for another start.
    mutating func dropAll(besides plan: Plan, unless isParked: (Newcomer) -> Bool = { _ in false }) {
        let planned = plan.fresh
        for (key, newcomer) in all where !planned.contains(key) {
            all[key] = nil
            if let handOver = newcomer.handOver {
                // The newcomer must release its resources before its predecessor acquires them again.
                Drain(context: context).retire([newcomer.generation])
                handOver.undo()
            } else if !isParked(newcomer) {
                abandoned.append(newcomer.generation)
            }
        }
    }

    /// Tears down the newcomers that were abandoned.
    func retireAbandoned() { Drain(context: context).retire(abandoned) }

    /// Tears down all newcomers.
    mutating func retireAll() {
        abandoned += all.values.map(\.generation)
        all = [:]
        retireAbandoned()
    }

    /// Runs `setUp` of all new generations, then hands over the state of those that they replace, then runs `init` of
    /// all, each in the order of the plan. Returns false if the plan must be made again because something failed or a
    /// file was reloaded.
    mutating func start(_ plan: Plan) -> Bool {
        let nestedStarts = context.nestedStarts
        let known = plan.serving.filter { $0.served == nil && !$0.module.isOpen }
        guard known.isEmpty else {
            FileScan(context: context).openKnown(known.map(\.path))
            return false
        }
        for candidate in plan.serving where candidate.served == nil {
            let key = ObjectIdentifier(candidate.module)
            guard all[key] == nil else { continue }
            guard let generation = setUp(candidate) else { return false }
            all[key] = Newcomer(generation: generation, candidate: candidate)
        }
        let fresh = plan.serving.map { ObjectIdentifier($0.module) }.filter { all[$0]?.isInitialized == false }
        guard !fresh.isEmpty else { return true }
        guard context.nestedStarts == nestedStarts else { return false }
        context.proposed = Proposed(plan, all, besides: context)
        context.propose()
        // Must precede the first blocking of calls, since `didStart` may call modules that hand over their states.
        for key in fresh {
            let patience = context.hooks.patienceWithOthers
            guard let old = predecessor(of: key, plan), !waitForStart(of: old, patience) else { continue }
            leave(all[key]!, behind: old, after: patience)
            return false
        }
        for key in fresh where !handOver(to: key, plan) { return false }
        return initialize(fresh)
    }

    /// Waits for `didStart`, and the delivery of missed events, of a module that is to hand over its state. Returns
    /// false if they have not ended in time: the change then continues without the successor.
    private func waitForStart(of old: Generation, _ patience: Duration) -> Bool {
        if old.waitForCodeAfterStart(within: patience) || context.hooks.waitsForAll { return true }
        context.patience.end()
        return false
    }

    /// Continues without a newcomer, since the module that is to hand over its state to it is still starting.
    private mutating func leave(_ newcomer: Newcomer, behind old: Generation, after patience: Duration) {
        all[ObjectIdentifier(newcomer.candidate.module)] = nil
        let code = old.startingCode.withLock { $0 } ?? (name: "didStart", begin: monotonicNow())
        let name = code.name == "didStart" ? code.name : "delivery of sticky events"
        let start = SlowStart(newcomer, "predecessor's \(name)", since: code.begin, isOfPredecessor: true)
        let late = context.leave(start, after: patience)
        // The code of the predecessor has a timeout of its own, after which the wait ends.
        ThreadPool.shared.run {
            _ = old.waitForCodeAfterStart(within: .seconds(1e9))
            late(.success(()))
        }
    }

    /// Creates a generation of a candidate and sets it up. Returns `nil` if that fails, or if the file must be loaded
    /// again.
    private mutating func setUp(_ candidate: Plan.Candidate) -> Generation? {
        let module = candidate.module
        var isUsedUp = module.isSpent
        if module.hasEnded, !isUsedUp { isUsedUp = revived.insert(PathKey(candidate.path)).inserted }
        if isUsedUp, module.isOfFile {
            FileScan(context: context).reload(candidate.path)
            return nil
        }
        let settings = context.core.moduleConfiguration.withLock { $0[module.outline.name] } ?? [:]
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

    /// Returns the generation that is to hand over its state to a newcomer; `nil` if it has already done so, or
    /// if there is none.
    private func predecessor(of key: ObjectIdentifier, _ plan: Plan) -> Generation? {
        let new = all[key]!.generation
        guard all[key]!.handOver == nil,
            let old = plan.leaving.first(where: { $0.name == new.name })?.generation, !old.hasCrashed,
            HandOver.isWanted(from: old, to: new)
        else { return nil }
        return old
    }

    /// Hands over the state from the generation that a newcomer replaces, if both support that. Returns false on
    /// failure.
    private mutating func handOver(to key: ObjectIdentifier, _ plan: Plan) -> Bool {
        guard let old = predecessor(of: key, plan) else { return true }
        let new = all[key]!.generation
        do throws(PluginError) {
            let handOver = try HandOver(from: old, context.hooks)
            do throws(PluginError) {
                try handOver.complete(in: new)
                all[key]!.handOver = handOver
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
            fail(all[key]!.candidate, error)
            return false
        }
    }

    mutating func fail(_ candidate: Plan.Candidate, _ error: PluginError) {
        if candidate.module.isRegistered {
            refusal = error
        } else if let record = context.folders.records[candidate.path] {
            context.folders.fail(record, error, candidate.module)
        }
    }

    /// Runs `init` of newcomers in their order, up to the first one that does not end in time: those after it may
    /// require it. Asynchronous functions overlap. Returns when each function that was called has ended or is no longer
    /// waited for. Returns false if the plan must be made again.
    private mutating func initialize(_ fresh: [ObjectIdentifier]) -> Bool {
        var failures: [(candidate: Plan.Candidate, error: PluginError)] = []
        var started: [(key: ObjectIdentifier, hook: StartedHook)] = []
        let hooks = context.hooks
        var isComplete = true
        var called = fresh[...]
        for (index, key) in fresh.enumerated() where all[key]!.generation.hooks["init"] != nil {
            let newcomer = all[key]!
            let (generation, timeout) = (newcomer.generation, context.configuration.hookTimeout)
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
            let newcomer = all[key]!
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
            all[key]?.isInitialized = true
            guard let newcomer = all[key],
                !failures.contains(where: { $0.candidate.module === newcomer.candidate.module }),
                let crash = newcomer.generation.crash(in: "init")
            else { continue }
            failures.append((newcomer.candidate, crash))
        }
        for failure in failures { fail(failure.candidate, failure.error) }
        return isComplete && failures.isEmpty
    }

    // MARK: Hooks that do not return in time

    /// Continues without a newcomer whose hook has not returned in time.
    ///
    /// - Parameters:
    ///   - time: How long the change has waited for the hook.
    ///   - change: Changes the newcomer to what it is when the hook has returned.
    /// - Returns: What to do with the hook's result.
    private mutating func leave(
        _ newcomer: Newcomer, after time: Duration, then change: (inout Newcomer) -> Void
    ) -> @Sendable (Result<Void, PluginError>) -> Void {
        let code = newcomer.generation.startingCode.withLock { $0 } ?? (name: "start", begin: monotonicNow())
        var later = newcomer
        change(&later)
        all[ObjectIdentifier(newcomer.candidate.module)] = nil
        return context.leave(SlowStart(later, code.name, since: code.begin), after: time)
    }

    /// Whether the host waits for the `init` of a newcomer until its timeout: the program waits for the outcome, or
    /// calls wait for the end of a hand-over, which must end within this change.
    private func isAwaited(_ newcomer: Newcomer) -> Bool {
        newcomer.candidate.module.isRegistered || newcomer.handOver != nil
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
