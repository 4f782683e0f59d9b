import CPluginHost
import Dispatch
import Foundation
import PluginABI
import Synchronization

/// What serves no more.
struct Drains: Sendable {
    /// The first that left first.
    var draining: [Draining] = []
    /// The last that were torn down.
    var retired: [GenerationStatus] = []
    /// Of all that were torn down.
    var total = RetiredTotal()
    /// What could not be kept for want of something, to be tried again; the first that left first.
    var unkept: [Served] = []
    /// Whether somebody will look at `draining` again.
    var isScheduled = false
}

/// A generation that serves no more, and is torn down when it is not used any more.
struct Draining: Sendable {
    let generation: Generation
    let since = Date()
    /// CLOCK_MONOTONIC nanoseconds.
    let begin = monotonicNow()
    var stage = Stage.leaving

    enum Stage: Sendable {
        /// It has left the table, and is not to be torn down yet.
        case leaving
        case draining
        /// As `draining`, for so long that it was told.
        case overdue
    }

    /// In nanoseconds.
    var age: Int64 { monotonicNow() - begin }
}

/// Tears generations down when their last call has ended and nobody holds an object of them.
struct Drain {
    let context: ChangeContext

    private var configuration: HostConfiguration { context.configuration }

    /// Lets generations be torn down, in this order.
    func retire(_ generations: [Generation]) {
        guard !generations.isEmpty else { return }
        for generation in generations {
            generation.isStarting.store(false, ordering: .relaxed)
            let place = place(of: generation) ?? context.drains.draining.endIndex
            if place == context.drains.draining.endIndex {
                context.drains.draining.append(Draining(generation: generation))
            }
            context.drains.draining[place].stage = .draining
        }
        tearDownDrained()
        context.publish()
    }

    private func place(of generation: Generation) -> Int? {
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
        let status = GenerationStatus(generation, .retired)
        if let place = place(of: generation) { context.drains.draining.remove(at: place) }
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
        // Nobody uses the instances any more.
        if generation.callsInFlight == 0 { ObjectTable.destroyInstances(of: generation) }
    }

    private func tellOverdue(_ draining: Draining) {
        let generation = draining.generation
        if let place = place(of: generation) { context.drains.draining[place].stage = .overdue }
        let status = GenerationStatus(generation, .draining, since: draining.since)
        generation.log(
            .warning, "was replaced or removed \(configuration.drainTimeout) ago, and \(status.holds)")
        context.tell(.drainOverdue(status))
    }

    // MARK: The end of the host

    /// Tears everything down, in reverse order, each module after its last call, unless that takes too long.
    func tearDownAll() {
        let (calls, announcements, timeout) = (context.calls, context.announcements, configuration.shutdownTimeout)
        var remaining = context.registry.table.generations
        announcements.announce("host.willTerminate", timeout: timeout) {
            calls.postHostEvent("host.willTerminate", waitingAtMost: timeout)
        }
        context.hooks.announceStop(to: remaining)
        let deadline = DispatchTime.now() + timeout.dispatchInterval
        for generation in remaining.reversed() {
            remaining.removeLast()
            context.registry.publish(remaining, isStopped: true)
            tearDown(generation, before: deadline)
            announcements.announce("module.removed", timeout: timeout) { calls.postRemoved(generation) }
        }
        context.registry.publish([], isStopped: true)
        for draining in context.drains.draining { tearDown(draining.generation, before: deadline) }
    }

    private func tearDown(_ generation: Generation, before deadline: DispatchTime) {
        while generation.callsInFlight > 0, DispatchTime.now() < deadline { usleep(1000) }
        guard generation.callsInFlight == 0 else {
            return generation.log(
                .warning, "was still running calls when the host stopped; it was not torn down.")
        }
        tearDown(generation)
    }
}

extension Generation {
    /// Lets its objects answer no more. What runs in them goes on.
    fileprivate func revoke() {
        isRevoked.store(true, ordering: .sequentiallyConsistent)
        // Who does not see it has entered the call in its record by now.
        plugin_host_fence_heavy()
    }

    var isDrained: Bool {
        callsInFlight == 0 && (objectCount.load(ordering: .relaxed) == 0 || isRevoked.load(ordering: .relaxed))
    }

    /// Writes a line of the log about it.
    func log(_ level: LogLevel, _ message: String) {
        core.settings.log(LogEntry(level: level, module: name, message: "\(label) \(message)"))
    }
}
