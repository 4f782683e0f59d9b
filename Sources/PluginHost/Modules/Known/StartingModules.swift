import PluginABI
import PluginFile
import Synchronization

// The starts of registered modules that calls ask for.

extension ChangeContext {
    /// Accepts requests for starts.
    func acceptStarts() {
        waits.set { [weak self] in
            self?.starts.opened == nil
        } _: { [weak self] start in
            self?.serve(start, isNested: true)
        }
        core.starter.set { [weak self] start in self?.begin(start) }
    }

    /// Begins a start on the thread that asks for it. Code that runs on the thread that changes modules cannot wait, so
    /// for it the module is started at once.
    private func begin(_ start: StartRequest) {
        guard !queue.isCurrent else { return serve(start, isNested: true, isInline: true) }
        waits.add(start)
        queue.async { [weak self] in self?.serveRequests() }
        if isEnding.load(ordering: .sequentiallyConsistent) { serveRequests() }
    }

    /// Starts all modules that are asked for. If the host ends, they are refused.
    func serveRequests() { while let start = waits.next() { serve(start, isNested: false) } }

    /// - Parameters:
    ///   - isNested: Whether another change waits for the end of the start.
    ///   - isInline: Whether the call is made on the thread that changes modules.
    private func serve(_ start: StartRequest, isNested: Bool, isInline: Bool = false) {
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
        start.setRunning()
        if isNested {
            Reconciler.startNested(start.name, self)
        } else {
            var reconciler = Reconciler(self, starting: start.name)
            reconciler.reconcile()
            FolderUpdate(self).tellFailures()
        }
        core.starter.end(start, reasonForAbsence(of: start.name))
    }

    /// Returns why a module does not serve, if the table does not say it.
    private func reasonForAbsence(of name: String) -> PluginError? {
        guard serving.modules[name] == nil else { return nil }
        let record = folders.records.values.first { $0.claimedModule?.name == name && $0.error != nil }
        let reason =
            record?.error?.message
            ?? starts.slow.values.first { $0.newcomer.generation.name == name }?.reason.message
        return PluginError(
            .moduleUnavailable,
            "\(name) could not be started: \(reason ?? "it needs a module that is itself starting.")")
    }
}
