import Dispatch
import PluginABI
import PluginFile
import Synchronization

/// The crashes of the modules of one host, by the names of the modules.
final class Crashes: Sendable {
    private struct Record {
        /// The digest of the file that has crashed.
        var digest: UInt64 = 0
        /// The number of crashes since the module last ran for the stable time, or its file changed.
        var count = 0
        /// The time of the last crash, in nanoseconds of CLOCK_MONOTONIC.
        var last: Int64 = 0
        /// How many times the module was started again in total.
        var restarts = 0
    }

    private let records = Mutex<[String: Record]>([:])

    /// Records a crash.
    ///
    /// - Returns: How long to wait before the module is started again; `nil` if it has crashed too often.
    func note(_ module: String, digest: UInt64, _ isolation: Isolation) -> Duration? {
        let pauses = isolation.restartPauses
        return records.withLock { records in
            var record = records[module] ?? Record()
            defer { records[module] = record }
            let now = monotonicNow()
            // The pause before the restart does not count as time without a crash.
            let pause = record.count == 0 ? .zero : pauses[record.count - 1]
            let isStable = now - record.last > isolation.stableTime.nanoseconds.adding(pause.nanoseconds)
            if isStable || record.digest != digest { record.count = 0 }
            (record.last, record.digest) = (now, digest)
            guard record.count < pauses.count else { return nil }
            record.count += 1
            return pauses[record.count - 1]
        }
    }

    func noteRestart(_ module: String) { records.withLock { $0[module, default: Record()].restarts += 1 } }

    func restarts(of module: String) -> Int { records.withLock { $0[module]?.restarts ?? 0 } }
}

/// The restart of an isolated module: it is replaced by another generation of the same file.
struct Restart {
    private let context: ChangeContext
    private let generation: Generation

    /// Begins the restart of a module that has crashed. Does not block.
    ///
    /// - Returns: What to do after the running calls have ended; `nil` if the module does not serve, or the host
    ///   is shutting down.
    static func begin(of generation: Generation, _ context: ChangeContext) -> (@Sendable () -> Void)? {
        guard !context.isEnding.load(ordering: .acquiring),
            context.serves(generation), generation.module?.process?.setAwaitsRestart(true) == false
        else { return nil }
        let restart = Restart(context: context, generation: generation)
        let pause = restart.notePause()
        // Calls wait for a restart that happens immediately, so that a crash concerns only those that were running.
        let barrier =
            pause == .zero
            ? CallBarrier(
                generation, limit: context.configuration.waitingCallsLimit,
                endedOn: [context.queue, WorkerProcess.afterwards])
            : nil
        return { restart.plan(after: pause, barrier) }
    }

    /// Records the crash. Returns how long to wait before the module is started again; `nil` if it has crashed too
    /// often.
    private func notePause() -> Duration? {
        context.crashes.note(
            generation.name, digest: generation.module?.staged.digest ?? 0, context.configuration.isolation)
    }

    private func plan(after pause: Duration?, _ barrier: CallBarrier?) {
        let reason = tell(pause)
        context.queue.async { [self] in
            guard !context.isStopped else {
                barrier?.end(isSucceeded: true)
                return
            }
            // Subscribers may call the module, so they do not delay its restart.
            if pause == .zero { run(barrier) }
            context.announcements.announce("module.crashed") { [calls = context.calls, generation] in
                calls.postCrashed(generation, reason)
            }
            guard let pause else {
                return giveUp(PluginError(.moduleCrashed, "\(generation.name) crashed. \(reason)"))
            }
            if pause != .zero { context.later(after: pause) { _ in run(nil) } }
        }
    }

    /// Reports the crash. Returns what is reported.
    private func tell(_ pause: Duration?) -> String {
        let report = generation.module?.process?.report ?? ""
        let next =
            switch pause {
            case nil where context.configuration.isolation.restartPauses.isEmpty:
                "It is not started again until its file changes."
            case nil: "It has crashed too often, and is not started again until its file changes."
            case .zero?: "It is started again."
            case let pause?: "It is started again in \(pause)."
            }
        let reason = "\(report) \(next)"
        generation.log(.error, "crashed. \(reason)")
        context.announcements.tell(.crashed(GenerationStatus(generation, .draining), reason))
        return reason
    }

    /// Whether the module still serves, and has not been replaced in the meantime.
    private var served: Served? {
        context.serving.modules[generation.name].flatMap { $0.generation === generation ? $0 : nil }
    }

    private func run(_ barrier: CallBarrier?) {
        // If it could not be started, its calls fail until the next attempt.
        defer { barrier?.end(isSucceeded: self.served == nil) }
        guard self.served != nil else { return }
        context.crashes.noteRestart(generation.name)
        do throws(PluginError) { try context.restart(generation.name) } catch { runAgain(error) }
    }

    /// Waits for the next attempt after one that has failed.
    private func runAgain(_ error: PluginError) {
        guard served != nil else { return }
        guard let pause = notePause() else { return giveUp(error) }
        generation.log(.error, "could not be started again: \(error.message) The next attempt is in \(pause).")
        context.later(after: pause) { _ in run(nil) }
    }

    private func giveUp(_ error: PluginError) {
        guard let served else { return }
        generation.module?.process?.setAwaitsRestart(false)
        if let record = context.folders.records[served.path] { context.folders.fail(record, error, served.module) }
        context.reconcile()
        FolderUpdate(context).retryLater()
    }
}

extension ChangeContext {
    /// Starts an isolated module again: replaces it with another generation of the same file, with its state if the
    /// module hands it over.
    ///
    /// - Throws: `unknownModule` if there is no such module, or it is not isolated; the error of the start, in which
    ///   case the old generation continues to serve.
    func restart(_ name: String) throws(PluginError) {
        guard let present = serving.modules[name] else {
            guard let record = folders.records.values.first(where: { $0.claimedModule?.outline.name == name }),
                record.claimedModule?.process != nil
            else {
                throw PluginError(
                    .unknownModule,
                    registry.table.contents.known.modules.contains { $0.name == name }
                        ? "\(name) is registered and has not started. The first call starts it."
                        : "There is no module “\(name.shortened)” that could be restarted.")
            }
            return try start(record)
        }
        guard present.module.process != nil else {
            throw PluginError(
                .unknownModule,
                "\(name) runs in the process of the host and cannot be restarted; only isolated modules can.")
        }
        serving.modules[name]?.isRestarting = true
        defer { serving.modules[name]?.isRestarting = false }
        FileScan(context: self).reload(present.path)
        patiently { reconcile() }
        guard let next = serving.modules[name], next.generation !== present.generation else {
            throw folders.records[present.path]?.error
                ?? PluginError(.moduleUnavailable, "\(name) was not started again.")
        }
    }

    /// Starts a module that has failed.
    private func start(_ record: FileRecord) throws(PluginError) {
        FileScan(context: self).reload(record.path)
        patiently { reconcile() }
        if let error = folders.records[record.path]?.error { throw error }
    }
}
