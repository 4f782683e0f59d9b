import PluginABI
import PluginFile
import Synchronization

/// The publication of a plan whose new generations are initialised: publishes the next table and the snapshot for other
/// threads, and notifies modules and observers.
struct Publication {
    private let context: ChangeContext
    private let plan: Plan
    private let newcomers: [ObjectIdentifier: Newcomer]
    /// The modules that serve from now on, in the order of the plan.
    private let served: [Served]
    /// The modules that served before, by name.
    private let before: BucketMap<String, Served>
    /// The modules that are removed without replacement, in reverse order.
    private let gone: [Served]
    /// The modules that are put to rest.
    private let rested: [Served]
    /// The modules that are replaced.
    private let replaced: [Served]
    /// The modules that the publication makes unavailable, and why.
    private let unavailability: Unavailability
    /// The registered modules; `nil` if they stay the same.
    private let known: KnownModules?
    /// The modules that were registered before, whether or not they start.
    private let wasRegistered: KnownModules

    init(_ context: ChangeContext, _ plan: Plan, _ newcomers: [ObjectIdentifier: Newcomer]) {
        (self.context, self.plan, self.newcomers) = (context, plan, newcomers)
        let served = plan.serving.map { candidate in
            var served =
                candidate.served
                ?? Served(
                    newcomers[ObjectIdentifier(candidate.module)]!.generation, candidate.module, path: candidate.path)
            if candidate.isInFolder { served.path = candidate.path }
            return served
        }
        let names = Set(served.map(\.name))
        self.served = served
        before = context.serving.modules
        (gone, rested) = (plan.gone, plan.rested)
        replaced = plan.leaving.filter { names.contains($0.name) }
        let present = context.registry.table.contents.known
        let next = plan.registrations?.modules ?? present.changed(to: plan.registered(after: present, in: context))
        known = next === present ? nil : next
        let unavailability = Unavailability(of: plan, context.folders, registered: present, then: known)
        self.unavailability = unavailability
        wasRegistered = present
    }

    /// The files of modules that become registered.
    private var registered: [FileRecord] {
        let rest = known == nil ? [] : plan.resting
        return rest.filter { candidate in
            wasRegistered.module(named: candidate.outline.name).map { !Plan.isSame($0, candidate.module) } ?? true
        }
        .compactMap { unavailability.record($0.path) }
    }

    /// - Parameter outer: What is proposed by an outer change, which waits for code of a module; `nil` if there is
    ///   none.
    func make(within outer: Proposed? = nil) {
        let hooks = context.hooks
        unavailability.note(in: &context.serving)
        let started = served.filter { newcomers[ObjectIdentifier($0.module)] != nil }
        // Even before calls reach a new generation, the end of its process is treated as the crash of a serving module,
        // so that calls wait for its restart.
        context.upcoming.withLock { $0 = started.map(\.generation) }
        let restarts = started.filter(\.module.hasEnded).compactMap { Restart.begin(of: $0.generation, context) }
        publish()
        context.upcoming.withLock { $0 = [] }
        for newcomer in newcomers.values { newcomer.generation.isStarting.store(false, ordering: .relaxed) }
        context.proposed = outer
        context.propose()
        context.starts.resumed = []
        context.showLateModules()
        for newcomer in newcomers.values { newcomer.handOver?.finish() }

        for restart in restarts { WorkerProcess.afterwards.async(restart) }
        if context.announcements.haveObservers {
            for record in registered { context.tell(change(toRegistered: record)) }
        }
        for newcomer in started { context.tell(change(to: newcomer)) }
        context.restLater(started)
        for leaving in gone {
            context.tell(
                .removed(GenerationStatus(leaving.generation, .draining), unavailability.reason(of: leaving)))
        }
        for leaving in unregistered {
            context.tell(.removed(GenerationStatus(registered: leaving), unavailability.reason(of: leaving)))
        }
        for change in judged.compactMap(\.verdictChange) { context.tell(change) }
        if context.disk != nil { context.memoryWatch.beginIfAwaited() }
        hooks.announceStart(to: started.map(\.generation))
        hooks.announceMissedEvents(to: started.map(\.generation))
        announceRegistered()
        announce(started)
        hooks.announceStop(to: (rested.reversed() + replaced).map(\.generation))
        VersionRetention(context: context).keep(leaving: plan.leaving)
        if known != nil { VersionRetention(context: context).keepHeld() }
        Drain(context: context).retire((gone + rested + replaced).map(\.generation))
    }

    private func publish() {
        let hasNewAbsentees = context.folders.hasNewAbsentees
        context.folders.hasNewAbsentees = false
        if !newcomers.isEmpty || !plan.leaving.isEmpty || !judged.isEmpty || hasNewAbsentees
            || known != nil
        {
            context.registry.publish(
                plan.generations(with: newcomers, among: context.registry.table.generations), known,
                routes: plan.routeChange, absences: unavailability.absences(context.serving))
        }
        // The status changes after the table, so that a module that is listed as active can be called.
        for record in judged { context.folders.judge(record) }
        context.serving.replace(by: served, among: plan.names)
        context.settle(plan)
        context.drains.draining += (gone + rested + replaced).map { Draining(generation: $0.generation) }
        context.publish()
    }

    /// The modules that are no longer registered, besides those whose starts have failed.
    private var unregistered: [LoadedModule] {
        unavailability.unregistered.filter { !unavailability.hasFailed($0) }
    }

    private var judged: [FileRecord] { unavailability.judged }

    private func change(to newcomer: Served) -> HostChange {
        let status =
            unavailability.record(newcomer.path)?.status(newcomer)
            ?? ModuleStatus(
                .active, file: newcomer.path, since: newcomer.since, newcomer.module.outline, newcomer.generation)
        guard let before = before[newcomer.name] else {
            guard let known = wasRegistered.module(named: newcomer.name) else { return .added(status) }
            return Plan.isSame(known, newcomer.module)
                ? .started(status) : .replaced(status, GenerationStatus(registered: known))
        }
        if before.isRestart(to: newcomer) { return .restarted(status) }
        return .replaced(status, GenerationStatus(before.generation, .draining))
    }

    private func change(toRegistered record: FileRecord) -> HostChange {
        let status = record.status(nil)
        guard let known = record.module.flatMap({ wasRegistered.module(named: $0.name) }) else {
            return isRested(status.name) ? .rested(status) : .added(status)
        }
        return .replaced(status, GenerationStatus(registered: known))
    }

    private func isRested(_ name: String?) -> Bool { rested.contains { $0.name == name } }

    /// Posts the host's events about modules that become registered.
    private func announceRegistered() {
        guard ["module.added", "module.replaced"].contains(where: context.calls.hasSubscribers) else { return }
        for module in registered.compactMap(\.module) where !isRested(module.name) {
            announceAdded(insteadOf: wasRegistered.module(named: module.name)?.outline.version) {
                module.eventParameters
            }
        }
    }

    /// Posts the host's events about modules that start or are removed.
    private func announce(_ started: [Served]) {
        let calls = context.calls
        for newcomer in started where before[newcomer.name]?.isRestart(to: newcomer) != true {
            let known = before[newcomer.name] == nil ? wasRegistered.module(named: newcomer.name) : nil
            if let known, Plan.isSame(known, newcomer.module) { continue }
            announceAdded(insteadOf: before[newcomer.name]?.version ?? known?.outline.version) {
                newcomer.generation.eventParameters
            }
        }
        let removed =
            gone.map(\.generation.eventParameters)
            + unregistered.map(\.eventParameters)
        for module in removed {
            context.announcements.announce("module.removed") { calls.postRemoved(module) }
        }
    }

    private func announceAdded(
        insteadOf previous: SemanticVersion?, _ module: @escaping @Sendable () -> [String: Value]
    ) {
        let calls = context.calls
        context.announcements.announce(previous == nil ? "module.added" : "module.replaced") {
            calls.postAdded(module(), insteadOf: previous)
        }
    }
}
