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
    /// ``judged``, by path.
    private let judgedFiles: [PathKey: FileRecord]
    /// The registered modules; `nil` if they stay the same.
    private let known: KnownModules?
    /// The files of modules that become registered.
    private let registered: [FileRecord]
    /// The modules that were registered before, whether or not they start.
    private let wasRegistered: KnownModules
    /// The modules that were registered before and are removed without having started.
    private let unregistered: [LoadedModule]

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
        let judgedFiles = Dictionary(judged.map { (PathKey($0.path), $0) }) { $1 }
        self.judgedFiles = judgedFiles
        let present = context.registry.table.contents.known
        let next = present.changed(to: plan.registered(after: present, in: context))
        known = next === present ? nil : next
        wasRegistered = present
        let rest = known == nil ? [] : plan.resting
        registered = rest.filter { candidate in
            present.module(named: candidate.outline.name).map { !Plan.isSame($0, candidate.module) } ?? true
        }
        .compactMap { judgedFiles[$0.path] ?? context.folders.records[$0.path] }
        if known == nil {
            unregistered = []
        } else {
            let concerned = plan.names.map { present.modules(named: $0) } ?? present.modules
            unregistered = concerned.filter { !names.contains($0.name) && next.module(named: $0.name) == nil }
        }
    }

    /// - Parameter outer: What is proposed by an outer change, which waits for code of a module; `nil` if there is
    ///   none.
    func make(within outer: Proposed? = nil) {
        let hooks = context.hooks
        for leaving in gone where !leaving.module.isRegistered {
            context.serving.noteDeparture(of: leaving.module, reason(of: leaving))
        }
        for leaving in unregistered { context.serving.noteDeparture(of: leaving, reason(of: leaving)) }
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
        for record in registered { context.tell(change(toRegistered: record)) }
        for newcomer in started { context.tell(change(to: newcomer)) }
        for leaving in gone {
            context.tell(.removed(GenerationStatus(leaving.generation, .draining), reason(of: leaving)))
        }
        for leaving in unregistered where !hasFailed(leaving) {
            context.tell(.removed(GenerationStatus(registered: leaving), reason(of: leaving)))
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
                plan.generations(with: newcomers, among: context.registry.table.generations), known,
                routes: plan.routeChange, absences: absences)
        }
        // The status changes after the table, so that a module that is listed as active can be called.
        for record in judged { context.folders.judge(record) }
        context.serving.replace(by: served, among: plan.names)
        context.settle(plan)
        context.drains.draining += (gone + replaced).map { Draining(generation: $0.generation) }
        context.publish()
    }

    /// The modules that do not serve, with the reasons.
    private var absences: UnavailableModules {
        let names = Set(served.map(\.name))
        let serves: (String) -> Bool = { name in
            names.contains(name) || plan.names?.contains(name) == false && context.serving.contains(name)
        }
        return context.serving.absences(unless: serves, refused)
    }

    /// The records of the files that are not served.
    private var refused: [FileRecord] {
        let others = context.folders.unsettledRecords.filter { judgedFiles[$0.path] == nil }
        return (others + judged).filter { $0.error != nil }
    }

    private func record(_ path: String) -> FileRecord? { judgedFiles[path] ?? context.folders.records[path] }

    private func change(to newcomer: Served) -> HostChange {
        let status =
            record(newcomer.path)?.status(newcomer)
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
        guard let known = record.module.flatMap({ wasRegistered.module(named: $0.name) }) else { return .added(status) }
        return .replaced(status, GenerationStatus(registered: known))
    }

    /// Returns whether a module is no longer registered because its start has failed, which is reported as a failure.
    private func hasFailed(_ module: LoadedModule) -> Bool { record(module.file)?.isFailure == true }

    private func reason(of leaving: Served) -> String {
        if leaving.module.isRegistered { return "the program has unregistered it." }
        return reason(of: leaving.module, in: leaving.path)
    }

    private func reason(of leaving: LoadedModule) -> String { reason(of: leaving, in: leaving.file) }

    private func reason(of leaving: LoadedModule, in path: String) -> String {
        let own = record(path)
        let others = refused.filter { $0.claimedModule?.name == leaving.name }
        if let error = own?.error ?? others.min(by: { PathKey($0.path) < PathKey($1.path) })?.error {
            return error.message
        }
        return "it was removed: \(path) \(own == nil ? "is gone" : "no longer contains it")."
    }

    /// Posts the host's events about modules that become registered.
    private func announceRegistered() {
        for module in registered.compactMap(\.module) {
            announceAdded(module.eventParameters, insteadOf: wasRegistered.module(named: module.name)?.outline.version)
        }
    }

    /// Posts the host's events about modules that start or are removed.
    private func announce(_ started: [Served]) {
        let calls = context.calls
        for newcomer in started where before[newcomer.name]?.isRestart(to: newcomer) != true {
            let known = before[newcomer.name] == nil ? wasRegistered.module(named: newcomer.name) : nil
            if let known, Plan.isSame(known, newcomer.module) { continue }
            announceAdded(
                newcomer.generation.eventParameters,
                insteadOf: before[newcomer.name]?.version ?? known?.outline.version)
        }
        let removed =
            gone.map(\.generation.eventParameters)
            + unregistered.filter { !hasFailed($0) }.map(\.eventParameters)
        for module in removed {
            context.announcements.announce("module.removed") { calls.postRemoved(module) }
        }
    }

    private func announceAdded(_ module: [String: Value], insteadOf previous: SemanticVersion?) {
        let calls = context.calls
        context.announcements.announce(previous == nil ? "module.added" : "module.replaced") {
            calls.postAdded(module, insteadOf: previous)
        }
    }
}
