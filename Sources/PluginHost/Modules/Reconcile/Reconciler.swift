import PluginABI
import PluginFile
import Synchronization

/// A change that the program makes.
enum ProgramChange {
    /// Registers a module, possibly in place of one that the program has registered before.
    case registers(LoadedModule, replacing: Served?)
    case unregisters(Served)
}

/// A reconciliation: brings what serves in line with the modules that are in the folders, linked into the program, or
/// registered by it.
///
/// All differences are applied as one change: new generations are set up and initialised, not yet visible to others;
/// then the next table is published; then they are started, and generations that no longer serve are retired. If a new
/// generation fails, its predecessor continues to serve, and everything is planned again without the new one.
struct Reconciler {
    private let context: ChangeContext
    private let change: ProgramChange?
    private var newcomers: Newcomers
    /// The name of the registered module that is to start.
    private let wanted: String?
    /// The generations whose `willStop` was called.
    private var told: Set<Int> = []

    init(_ context: ChangeContext, _ change: ProgramChange? = nil) {
        (self.context, self.change, wanted) = (context, change, nil)
        newcomers = Newcomers(context)
    }

    /// Creates a reconciliation that starts a registered module.
    init(_ context: ChangeContext, starting name: String) {
        (self.context, change, wanted) = (context, nil, name)
        newcomers = Newcomers(context)
    }

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
            let plan = context.plan(newcomers.refusal == nil ? change : nil, starting: wanted)
            abandonUnwanted(plan)
            newcomers.dropAll(besides: plan) { [context] in context.park($0, plan) }
            tellStarts(plan)
            guard newcomers.start(plan) else { continue }
            tellStop(plan)
            guard context.nestedStarts == nestedStarts else { continue }
            context.unpublished -= 1
            Publication(context, plan, newcomers.all).make()
            newcomers.retireAbandoned()
            if wanted == nil { context.resumeStartsLater() }
            return newcomers.refusal ?? plan.refusal
        }
    }

    // MARK: Hooks that do not return in time

    /// Continues the starts for which earlier changes did not wait, if their hooks have returned.
    private mutating func takeReturned() {
        for newcomer in context.starts.parked.values { newcomers.add(newcomer) }
        context.starts.parked = [:]
        for (key, start) in context.starts.slow {
            guard let outcome = start.outcome else { continue }
            context.starts.slow[key] = nil
            newcomers.add(start.newcomer)
            if case .failure(let error) = outcome { newcomers.fail(start.newcomer.candidate, error) }
        }
        context.starts.resumed = newcomers.all.values.map(\.generation)
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
}

extension Plan {
    /// The modules that start.
    var fresh: Set<ObjectIdentifier> {
        Set(serving.filter { $0.served == nil }.map { ObjectIdentifier($0.module) })
    }

    /// The modules that stop, and are registered from then on.
    var rested: [Served] {
        if leaving.isEmpty || resting.isEmpty { return [] }
        let names = Set(resting.map(\.outline.name))
        return leaving.filter { names.contains($0.name) }
    }

    /// The modules that are removed without replacement, in reverse order.
    var gone: [Served] {
        if leaving.isEmpty { return [] }
        let names = Set((serving + resting).map(\.outline.name))
        return leaving.filter { !names.contains($0.name) }.reversed()
    }

    /// Returns whether the module in a file waits only for a hook that has not returned yet.
    func isStarting(_ path: String) -> Bool { if case .starts = verdicts[path] { true } else { false } }

    /// Returns the generations that will be in the table, in order.
    ///
    /// - Parameter present: The generations that are in the table.
    func generations(with newcomers: [ObjectIdentifier: Newcomer], among present: [Generation]) -> [Generation] {
        let generations = serving.map { $0.served?.generation ?? newcomers[ObjectIdentifier($0.module)]!.generation }
        if names == nil { return isInOrder ? generations : generations.inOrder }
        let own = Set((serving.compactMap(\.served) + leaving).map { ObjectIdentifier($0.generation) })
        let rest = own.isEmpty ? present : present.filter { !own.contains(ObjectIdentifier($0)) }
        return rest.adding(generations, areFree: othersAreFree)
    }
}
