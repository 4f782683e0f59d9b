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
    private let before: [String: Served]
    /// The modules that are removed without replacement, in reverse order.
    private let gone: [Served]
    /// The modules that are replaced.
    private let replaced: [Served]
    /// The records with new verdicts.
    private let judged: [FileRecord]
    /// All records, including those with new verdicts.
    private let records: [PathKey: FileRecord]
    /// The registered modules; `nil` if they stay the same.
    private let known: KnownModules?
    /// The files of modules that become registered.
    private let registered: [FileRecord]
    /// The modules that were registered before, whether or not they start.
    private let wasRegistered: Set<ObjectIdentifier>

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
        gone = plan.gone
        replaced = plan.leaving.filter { names.contains($0.name) }
        judged = plan.verdicts.compactMap { path, verdict in context.folders.records[path]?.decided(verdict) }
            .sorted { PathKey($0.path) < PathKey($1.path) }
        let records = context.folders.records.merging(judged.map { (PathKey($0.path), $0) }) { $1 }
        self.records = records
        let present = context.registry.table.contents.known
        let next = present.changed(to: plan.registered(after: present, in: context))
        known = next === present ? nil : next
        wasRegistered = Set(present.modules.map { ObjectIdentifier($0.registration) })
        registered =
            known == nil
            ? []
            : plan.resting.filter { [wasRegistered] in !wasRegistered.contains(ObjectIdentifier($0.module.registration))
            }
            .compactMap { records[$0.path] }
    }

    /// - Parameter outer: What is proposed by an outer change, which waits for code of a module; `nil` if there is none.
    func make(within outer: Proposed? = nil) {
        let hooks = context.hooks
        for leaving in gone where !leaving.module.isRegistered {
            context.serving.noteDeparture(of: leaving, reason(of: leaving))
        }
        let started = served.filter { newcomers[ObjectIdentifier($0.module)] != nil }
        // Before calls reach the new generations, the end of one of their processes is treated as a crash of a serving
        // module, so that calls wait for its restart.
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

        for restart in restarts { ThreadPool.shared.run(restart) }
        for record in registered { context.tell(.added(record.status(nil))) }
        for newcomer in started { context.tell(change(to: newcomer)) }
        for leaving in gone {
            context.tell(.removed(GenerationStatus(leaving.generation, .draining), reason(of: leaving)))
        }
        judged.compactMap(\.verdictChange).forEach(context.tell)
        if context.disk != nil { context.memoryWatch.beginIfAwaited() }
        hooks.announceStart(to: started.map(\.generation))
        hooks.announceMissedEvents(to: started.map(\.generation))
        announceRegistered()
        announce(started)
        hooks.announceStop(to: replaced.map(\.generation))
        VersionRetention(context: context).keep(leaving: plan.leaving)
        Drain(context: context).retire((gone + replaced).map(\.generation))
    }

    private func publish() {
        let hasNewAbsentees = context.folders.hasNewAbsentees
        context.folders.hasNewAbsentees = false
        if !newcomers.isEmpty || !plan.leaving.isEmpty || !judged.isEmpty || hasNewAbsentees
            || known != nil
        {
            context.registry.publish(
                plan.generations(with: newcomers), known, absences: context.serving.absences(besides: served, records))
        }
        // The status changes after the table, so that a module that is listed as active can be called.
        for record in judged { context.folders.put(record) }
        context.serving.replace(by: served)
        context.drains.draining += (gone + replaced).map { Draining(generation: $0.generation) }
        context.publish()
    }

    private func change(to newcomer: Served) -> HostChange {
        let status =
            records[newcomer.path]?.status(newcomer)
            ?? ModuleStatus(
                .active, file: newcomer.path, since: newcomer.since, newcomer.module.manifest, newcomer.generation)
        guard let before = before[newcomer.name] else {
            return isOfRegistered(newcomer) ? .started(status) : .added(status)
        }
        if before.isRestart(to: newcomer) { return .restarted(status) }
        return .replaced(status, GenerationStatus(before.generation, .draining))
    }

    private func isOfRegistered(_ newcomer: Served) -> Bool {
        wasRegistered.contains(ObjectIdentifier(newcomer.module.registration))
    }

    private func reason(of leaving: Served) -> String {
        if leaving.module.isRegistered { return "the program has unregistered it." }
        let own = records[leaving.path]
        let others = records.values.filter { $0.claimedModule?.manifest.name == leaving.name && $0.error != nil }
        if let error = own?.error ?? others.min(by: { PathKey($0.path) < PathKey($1.path) })?.error {
            return error.message
        }
        return "it was removed: \(leaving.path) \(own == nil ? "is gone" : "no longer contains it")."
    }

    private func announceRegistered() {
        let calls = context.calls
        for module in registered.compactMap(\.module) {
            context.announcements.announce("module.added") { calls.postAdded(module) }
        }
    }

    /// Posts the host's events.
    private func announce(_ started: [Served]) {
        let calls = context.calls
        for newcomer in started
        where before[newcomer.name]?.isRestart(to: newcomer) != true && !isOfRegistered(newcomer) {
            let (generation, predecessor) = (newcomer.generation, before[newcomer.name]?.generation)
            context.announcements.announce(predecessor == nil ? "module.added" : "module.replaced") {
                calls.postAdded(generation, insteadOf: predecessor)
            }
        }
        for generation in gone.map(\.generation) {
            context.announcements.announce("module.removed") { calls.postRemoved(generation) }
        }
    }
}
