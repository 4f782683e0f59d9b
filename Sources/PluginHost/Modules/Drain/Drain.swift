import CPluginHost
import Dispatch
import FoundationEssentials
import Glibc
import PluginABI
import PluginFile
import Synchronization

/// The generations that no longer serve.
struct Drains: Sendable {
    /// The generations that are not torn down yet, in the order in which they were replaced or removed.
    var draining: [Draining] = []
    /// The generations that were torn down last, up to a hundred.
    var retired: [GenerationStatus] = []
    /// The totals of all generations that were torn down.
    var total = RetiredTotal()
    /// The versions that could not be kept for lack of a resource and will be tried again, oldest first.
    var unkept: [Served] = []
    /// Whether another check of `draining` is scheduled.
    var isScheduled = false
}

/// A generation that no longer serves, and is torn down when it is no longer used.
struct Draining: Sendable {
    let generation: Generation
    let since = Date()
    /// The time when the generation stopped serving, in `CLOCK_MONOTONIC` nanoseconds.
    let begin = monotonicNow()
    var stage = Stage.leaving

    enum Stage: Sendable {
        /// The generation is no longer in the table, but must not be torn down yet.
        case leaving
        case draining
        /// The generation has been draining for longer than the drain timeout, and this was reported.
        case overdue
    }

    /// The time since the generation stopped serving, in nanoseconds.
    var age: Int64 { monotonicNow() - begin }
}

/// The teardown of generations whose last call has ended and whose objects have no holders.
struct Drain {
    let context: ChangeContext

    private var configuration: HostConfiguration { context.configuration }

    /// Tears down generations as soon as they are drained. If several are drained at the same time, they are torn down
    /// in the order in which they stopped serving.
    func retire(_ generations: [Generation]) {
        guard !generations.isEmpty else { return }
        for generation in generations {
            generation.isStarting.store(false, ordering: .relaxed)
            let index = index(of: generation) ?? context.drains.draining.endIndex
            if index == context.drains.draining.endIndex {
                context.drains.draining.append(Draining(generation: generation))
            }
            context.drains.draining[index].stage = .draining
        }
        tearDownDrained()
        context.publish()
    }

    private func index(of generation: Generation) -> Int? {
        context.drains.draining.firstIndex { $0.generation === generation }
    }

    private func tearDownDrained(after pause: Int = 5) {
        for draining in context.drains.draining where draining.stage != .leaving {
            revokeIfDue(draining)
            if draining.generation.isDrained {
                tearDown(draining.generation)
            } else if draining.stage == .draining, draining.age > configuration.drainTimeout.nanoseconds {
                tellOverdue(draining)
            }
        }
        guard !context.drains.draining.isEmpty, !context.isStopped, !context.drains.isScheduled else { return }
        context.drains.isScheduled = true
        context.later(after: .milliseconds(pause)) { context in
            context.drains.isScheduled = false
            Drain(context: context).tearDownDrained(after: min(pause * 2, 250))
        }
    }

    private func tearDown(_ generation: Generation) {
        do throws(PluginError) { try context.hooks.tearDown(generation) } catch {
            generation.log(.warning, error.message)
        }
        generation.module?.process?.end()
        let status = GenerationStatus(generation, .retired)
        if let index = index(of: generation) { context.drains.draining.remove(at: index) }
        context.drains.retired.append(status)
        context.drains.total.count += 1
        context.drains.total.mappedBytes += status.mappedBytes
        if context.drains.retired.count > 100 { context.drains.retired.removeFirst() }
        if let module = generation.module, module.isOfFile, !VersionRetention(context: context).isUnkept(module) {
            context.disk.staging.removeFiles(of: module.staged)
        }
        context.tell(.retired(status))
    }

    private func revokeIfDue(_ draining: Draining) {
        guard let limit = configuration.objectTimeout, draining.age > limit.nanoseconds else { return }
        let generation = draining.generation
        generation.revoke()
        // The instances are not in use.
        if !generation.isRunningCalls { ObjectTable.destroyInstances(of: generation) }
    }

    private func tellOverdue(_ draining: Draining) {
        let generation = draining.generation
        if let index = index(of: generation) { context.drains.draining[index].stage = .overdue }
        let status = GenerationStatus(generation, .draining, since: draining.since)
        generation.log(
            .warning, "has not served for \(configuration.drainTimeout), and \(status.holds)")
        context.tell(.drainOverdue(status))
    }

    // MARK: Shutdown

    /// Tears down the modules that are being started, then all generations in reverse order, each after its last call.
    /// A generation whose calls do not end within the shutdown timeout is not torn down.
    func tearDownAll() {
        let (calls, announcements, timeout) = (context.calls, context.announcements, configuration.shutdownTimeout)
        var remaining = context.registry.table.generations
        context.endStarts()
        announcements.announce("host.willTerminate", timeout: timeout) {
            calls.postHostEvent("host.willTerminate", waitingAtMost: timeout)
        }
        context.hooks.announceStop(to: remaining, waitingAtMost: timeout)
        let deadline = DispatchTime.now() + timeout.dispatchInterval
        while !remaining.isEmpty {
            let leaving = remaining.leavingTogether
            remaining.removeLast(leaving.count)
            context.registry.publish(remaining, KnownModules.none, isStopped: true)
            for generation in leaving {
                tearDown(generation, before: deadline)
                announcements.announce("module.removed", timeout: timeout) {
                    calls.postRemoved(generation.eventParameters)
                }
            }
        }
        context.registry.publish([], KnownModules.none, isStopped: true)
        for draining in context.drains.draining { tearDown(draining.generation, before: deadline) }
    }

    /// Tears down a generation that was set up, but has never served.
    func tearDownAtEnd(_ generation: Generation) { tearDown(generation) }

    private func tearDown(_ generation: Generation, before deadline: DispatchTime) {
        while generation.isRunningCode, DispatchTime.now() < deadline { usleep(1000) }
        guard !generation.isRunningCode else {
            return generation.log(
                .warning, "was still running calls when the host stopped, and was not torn down.")
        }
        tearDown(generation)
    }
}

extension [Generation] {
    /// The last generations, in reverse order, that can leave the table at once, since the time to build a table is
    /// proportional to the number of its modules. Code that runs at the end of a generation, and its running calls, may
    /// call earlier generations, so those must still be in the table. A subscriber of `module.removed` must be notified
    /// of the modules that left before its own.
    fileprivate var leavingTogether: [Generation] {
        var leaving: [Generation] = []
        for generation in reversed() {
            if !leaving.isEmpty, generation.subscriptions["module.removed"] != nil { break }
            leaving.append(generation)
            if generation.hasCodeAtEnd || generation.isRunningCode { break }
        }
        return leaving
    }
}

extension Generation {
    /// Whether code of the module runs when the generation is torn down.
    fileprivate var hasCodeAtEnd: Bool {
        hooks[ModuleManifest.Hook.tearDown.rawValue] != nil || module?.description.pointee.deactivate != nil
            || providers.contains(where: \.hasInstances)
    }

    /// Makes the generation's objects refuse new calls. Running calls continue.
    fileprivate func revoke() {
        isRevoked.store(true, ordering: .sequentiallyConsistent)
        // A thread that does not see the store has entered its call in its call record by now.
        plugin_host_fence_heavy()
    }

    /// Whether calls are running, or code of the generation's start is still to run.
    fileprivate var isRunningCode: Bool { isRunningCalls || !waitForCodeAfterStart(within: .zero) }

    var isDrained: Bool {
        !isRunningCode && (objectCount.load(ordering: .relaxed) == 0 || isRevoked.load(ordering: .relaxed))
    }

    /// Logs a message about the generation.
    func log(_ level: LogLevel, _ message: String) {
        core.settings.log(LogEntry(level: level, module: name, message: "\(label) \(message)"))
    }
}
