import CPluginHost
import Dispatch
import Foundation
import PluginABI
import Synchronization

/// A generation that serves no more, and is torn down when it is not used any more.
struct Draining {
    let generation: Generation
    let since = Date()
    /// CLOCK_MONOTONIC nanoseconds.
    let begin = monotonicNow()
    var isOverdueTold = false
}

extension Lifecycle {
    /// Tears generations down when their last call has ended and nobody holds an object of them, in this order.
    func retire(_ generations: [Generation]) {
        guard !generations.isEmpty else { return }
        for generation in generations { generation.isStarting.store(false, ordering: .relaxed) }
        state.withLock { state in
            for generation in generations {
                let place = state.leaving.firstIndex { $0.generation === generation }
                state.draining.append(place.map { state.leaving.remove(at: $0) } ?? Draining(generation: generation))
            }
        }
        tearDownDrained()
    }

    private func tearDownDrained(after pause: Int = 5) {
        for draining in state.withLock({ $0.draining }) {
            let generation = draining.generation
            revokeIfDue(draining)
            if generation.isDrained {
                tearDown(generation)
            } else if !draining.isOverdueTold, draining.age > configuration.drainTimeout.nanoseconds {
                tellOverdue(draining)
            }
        }
        let mustGoOn = state.withLock { state in
            guard !state.draining.isEmpty, !state.isStopped, !state.isDraining else { return false }
            state.isDraining = true
            return true
        }
        guard mustGoOn else { return }
        queue.async(after: .milliseconds(pause)) { [weak self] in
            self?.state.withLock { $0.isDraining = false }
            self?.tearDownDrained(after: min(pause * 2, 250))
        }
    }

    private func tearDown(_ generation: Generation) {
        do throws(PluginError) {
            try hooks.tearDown(generation, timeout: configuration.shutdownTimeout)
        } catch {
            log(.warning, generation, error.message)
        }
        let status = GenerationStatus(generation, .retired)
        state.withLock { state in
            state.draining.removeAll { $0.generation === generation }
            state.retired.append(status)
            state.retiredTotal.count += 1
            state.retiredTotal.mappedBytes += status.mappedBytes
            if state.retired.count > 100 { state.retired.removeFirst() }
        }
        if let module = generation.module, !isUnkept(module) { staging.removeFiles(of: module.staged) }
        tell(.retired(status))
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
        state.withLock { state in
            for place in state.draining.indices where state.draining[place].generation === generation {
                state.draining[place].isOverdueTold = true
            }
        }
        let status = GenerationStatus(generation, .draining, since: draining.since)
        log(.warning, generation, "was replaced or removed \(configuration.drainTimeout) ago, and \(status.holds)")
        tell(.drainOverdue(status))
    }

    /// Tears a generation down at the end of the host, when its last call has ended, unless that takes too long.
    func tearDown(_ generation: Generation, before deadline: DispatchTime) {
        while generation.callsInFlight > 0, DispatchTime.now() < deadline { usleep(1000) }
        guard generation.callsInFlight == 0 else {
            return log(.warning, generation, "was still running calls when the host stopped; it was not torn down.")
        }
        tearDown(generation)
    }
}

extension Draining {
    /// In nanoseconds.
    fileprivate var age: Int64 { monotonicNow() - begin }
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
}
