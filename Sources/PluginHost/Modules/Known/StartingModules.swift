import PluginABI
import PluginFile
import Synchronization

// The starts of registered modules that calls ask for.

extension ChangeContext {
    /// Accepts requests for starts.
    func acceptStarts() {
        waits.set { [weak self] start in
            self?.isNeededNow(start) == true
        } _: { [weak self] start, isTooDeep in
            self?.serve(start, isNested: true, isTooDeep: isTooDeep)
        }
        core.starter.set { [weak self] start, isNew in self?.begin(start, isNew: isNew) }
    }

    /// Begins a start on the thread that asks for it. Code that runs on the thread that changes modules cannot wait;
    /// the module is then started immediately.
    private func begin(_ start: StartRequest, isNew: Bool) {
        guard !queue.isCurrent else {
            if isNew || waits.take(start) { serve(start, isNested: true, isInline: true) }
            return
        }
        guard isNew else { return waits.wake() }
        waits.add(start)
        queue.async { [weak self] in self?.serveRequests() }
        if isEnding.load(ordering: .sequentiallyConsistent) { serveRequests() }
    }

    /// Whether a module is started while the thread that changes modules waits, because the code that the thread waits
    /// for may itself wait for this start. All other modules are started after the change.
    private func isNeededNow(_ start: StartRequest) -> Bool {
        guard starts.opened == nil else { return false }
        if unpublished == 0 || announcements.isWaiting { return true }
        return start.callers.contains(where: isWaitedFor)
    }

    /// Whether the thread that changes modules may wait for code of a module.
    private func isWaitedFor(_ generation: Generation) -> Bool {
        generation.isStarting.load(ordering: .relaxed) || waits.runsHook(generation)
    }

    /// Starts all modules that are requested, or refuses the requests if the host is shutting down.
    func serveRequests() {
        if isEnding.load(ordering: .sequentiallyConsistent), queue.isCurrent { resumeStarts() }
        while let start = waits.next() { serve(start, isNested: false) }
    }

    /// Continues the starts that wait for hooks, after the current change.
    func resumeStartsLater() {
        guard !starts.delayed.isEmpty else { return }
        queue.async { [weak self] in
            self?.resumeStarts()
            self?.serveRequests()
        }
    }

    private func resumeStarts() {
        let delayed = starts.delayed
        starts.delayed = []
        for start in delayed { waits.add(start) }
    }

    /// - Parameters:
    ///   - isNested: Whether another change waits for the end of the start.
    ///   - isInline: Whether the call is made on the thread that changes modules.
    ///   - isTooDeep: Whether too many starts wait for each other.
    private func serve(_ start: StartRequest, isNested: Bool, isInline: Bool = false, isTooDeep: Bool = false) {
        guard !isEnding.load(ordering: .sequentiallyConsistent) else {
            return core.starter.end(
                start,
                PluginError(.hostStopped, "The host has been shut down: \(start.name) is not started."))
        }
        guard starts.opened == nil, !isInline || announcements.runsHandlers else {
            return core.starter.end(
                start,
                PluginError(
                    .circularWait,
                    "\(start.name) cannot be started by a call from the thread that changes modules, for instance in a log "
                        + "closure. Make the call on another thread."))
        }
        guard !isTooDeep else {
            return core.starter.end(
                start,
                PluginError(
                    .recursionLimit,
                    "\(start.name) is not started: \(ChangeWaits.depthMax) modules are starting, each of which waits for "
                        + "a call to the next one."))
        }
        start.setRunning()
        var failure: PluginError?
        if isNested {
            var nested = NestedStart(self, of: start.name)
            do throws(PluginError) { try nested.run() } catch { failure = error }
        } else {
            var reconciler = Reconciler(self, starting: start.name)
            reconciler.reconcile()
            FolderUpdate(self).tellFailures()
            FolderUpdate(self).retryLater()
        }
        if failure == nil, serving.modules[start.name] == nil, let awaited = moduleAwaited(byStartOf: start.name) {
            guard let caller = start.callers.first(where: { $0.name == awaited.generation.name }) else {
                starts.delayed.append(start)
                return
            }
            failure = .circularStart(start.name, requiring: caller.name)
        }
        let refused = failure == nil ? nil : start.callers.filter(isWaitedFor)
        core.starter.end(start, failure ?? reasonForAbsence(of: start.name), refusing: refused)
    }

    /// Returns the module whose hook the start of a module waits for, directly or indirectly: the module itself, or one
    /// that it requires. `nil` if there is none.
    private func moduleAwaited(byStartOf name: String) -> Newcomer? {
        guard !starts.slow.isEmpty else { return nil }
        let plan = plan(starting: name)
        let records = folders.records.values.filter { $0.module?.name == name }
        let isStarting = records.contains { record in
            plan.isStarting(record.path) || record.module.map { starts.slow[ObjectIdentifier($0)] != nil } == true
        }
        guard isStarting else { return nil }
        var (open, seen): ([String], Set<String>) = ([name], [name])
        while let next = open.popLast() {
            if let slow = starts.slow.values.first(where: { $0.newcomer.generation.name == next }) {
                return slow.newcomer
            }
            let modules = folders.records.values.compactMap(\.module)
            for requirement in modules.filter({ $0.name == next }).flatMap(\.outline.requirements) {
                for module in modules where module.outline.provides(requirement) && seen.insert(module.name).inserted {
                    open.append(module.name)
                }
            }
        }
        return starts.slow.values.first?.newcomer
    }

    /// Returns why a module does not serve, if the table does not state the reason.
    private func reasonForAbsence(of name: String) -> PluginError? {
        guard serving.modules[name] == nil else { return nil }
        let record = folders.records.values.first { $0.claimedModule?.name == name && $0.error != nil }
        let reason = record?.error?.message ?? "another start, which waits for this one, has to end first."
        return PluginError(.moduleUnavailable, "\(name) could not be started: \(reason)")
    }
}
