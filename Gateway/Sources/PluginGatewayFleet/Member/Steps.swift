import Foundation
import Logging
import PluginABI
import PluginGateway
import PluginHost

extension FleetMember {
    /// Takes the next step of this host, if there is one.
    ///
    /// - Returns: Whether something was done, in which case there may be more to do.
    func act(_ snapshot: FleetSnapshot) async throws(EtcdError) -> Bool {
        guard isKnown else { return false }
        // The end of the last step could not be written.
        if snapshot.lockLease == lease { try await unlock(lease) }
        stepProblem = nil
        if let rollout = snapshot.rollout {
            let step = rollout.steps[name]
            switch rollout.state {
            case .running:
                switch step?.state {
                case .done: break
                case .rolledBack, .failed:
                    stepProblem =
                        "The rollout of \(rollout.module) \(rollout.release.shown) is running, but this host has rolled back. "
                        + "End it with “fleet back”."
                    return false
                case .replacing, .observing, nil:
                    let isCurrent: @Sendable (FleetSnapshot) -> Bool = { snapshot in
                        snapshot.rollout?.id == rollout.id
                            && (snapshot.rollout?.state == .running || snapshot.rollout?.state == .paused)
                    }
                    return try await locked(while: isCurrent) { () throws(StepError) in
                        try await self.goForward(rollout)
                    }
                }
                return try await finish(snapshot, rollout)
            case .paused: break
            case .rollingBack, .rolledBack, .failed:
                if let step, step.state == .failed {
                    stepProblem = "\(rollout.module) cannot be rolled back: \(step.reason ?? "no reason is known")"
                }
                if let step, step.state != .rolledBack, step.state != .failed {
                    let isCurrent: @Sendable (FleetSnapshot) -> Bool = { $0.rollout?.id == rollout.id }
                    return try await locked(while: isCurrent) { () throws(StepError) in
                        try await self.rollBack(rollout)
                    }
                }
                if rollout.state == .rollingBack { return try await finish(snapshot, rollout) }
            case .done: break
            }
        }
        return try await pursue(snapshot)
    }

    /// The reason why a step ended early.
    enum StepError: Error {
        case etcd(EtcdError)
        /// There is another rollout, its state has changed, or the lock was lost.
        case overtaken
    }

    /// What must still be true right before a module is replaced.
    struct StepInProgress {
        let lease: Int
        let isCurrent: @Sendable (FleetSnapshot) -> Bool
    }

    /// Throws an error unless the host still holds the lock, and its step must still be taken.
    func checkStep() async throws(FleetError) {
        guard let step else { return }
        let snapshot = try? await look()
        guard let snapshot, snapshot.lockLease == step.lease, step.isCurrent(snapshot) else {
            throw FleetError("The step no longer belongs to this host.", isOvertaken: true)
        }
    }

    // MARK: The lock

    /// Takes a step while no other host takes one.
    ///
    /// - Parameters:
    ///   - isCurrent: Whether the step must still be taken.
    ///   - body: The step.
    /// - Returns: Whether it was taken.
    func locked(
        while isCurrent: @escaping @Sendable (FleetSnapshot) -> Bool, _ body: () async throws(StepError) -> Void
    ) async throws(EtcdError) -> Bool {
        let lease = lease
        let lock: [EtcdOperation] = [.put(keys.lock, Array(name.utf8), lease: lease)]
        let isFree: [EtcdCondition] = [.absent(keys.lock), .held(keys.host(name), by: lease)]
        if try await etcd.transact(if: isFree, lock) == nil {
            // The lock may be left from a step whose end could not be written.
            guard try await etcd.transact(if: [.held(keys.lock, by: lease)], lock) != nil else { return false }
        }
        step = StepInProgress(lease: lease, isCurrent: isCurrent)
        defer { step = nil }
        do throws(StepError) {
            try await body()
        } catch {
            try? await unlock(lease)
            if case .etcd(let error) = error { throw error }
            // The release of the lock wakes this host up, too.
            let length = overtakenPause.next()
            try? await Task.sleep(for: length)
            return false
        }
        overtakenPause = Pause()
        try await unlock(lease)
        return true
    }

    private func unlock(_ lease: Int) async throws(EtcdError) {
        _ = try await etcd.transact(if: [.held(keys.lock, by: lease)], [.delete(keys.lock)])
    }

    /// Changes the record of a rollout, unless another rollout has taken its place.
    ///
    /// - Parameters:
    ///   - id: The rollout.
    ///   - change: Changes the record, and returns whether to write it.
    /// - Returns: The record, with the change.
    @discardableResult
    private func update(
        _ id: String, _ change: (inout RolloutRecord) throws(StepError) -> Void
    ) async throws(StepError) -> RolloutRecord {
        do throws(EtcdError) {
            for _ in 0..<20 {
                let snapshot = try await look()
                guard var record = snapshot.rollout, record.id == id else { throw StepError.overtaken.asEtcd }
                do throws(StepError) { try change(&record) } catch { throw error.asEtcd }
                let written = try await etcd.transact(
                    if: [.unchanged(keys.rollout, since: snapshot.rolloutRevision), .held(keys.lock, by: lease)],
                    [.put(keys.rollout, Array(record.json.json.utf8))])
                if written != nil { return record }
                guard let lock = try await etcd.get(keys.lock), lock.lease == lease else {
                    throw StepError.overtaken.asEtcd
                }
            }
            throw StepError.overtaken.asEtcd
        } catch {
            throw error.code == .refused && error.description == StepError.mark ? .overtaken : .etcd(error)
        }
    }

    // MARK: The steps

    private func goForward(_ rollout: RolloutRecord) async throws(StepError) {
        let (id, module) = (rollout.id, rollout.module)
        var current = served.named(module)?.record.release
        // So that hosts that join later can follow if this is rolled back.
        if let release = current {
            current = try? await onThread { [store = configuration.store] in
                ModuleFiles.find(module, release, in: store)
            }
        }
        let desired = try? await look().desired[module]
        try await update(id) { record throws(StepError) in
            guard record.state == .running else { throw .overtaken }
            guard
                record.steps[name] == nil || record.steps[name]?.state == .replacing
                    || record.steps[name]?.state == .observing
            else { throw .overtaken }
            var step = record.steps[name] ?? .init(state: .replacing, before: nil)
            if record.steps[name] == nil {
                step.before = current
                if let desired, desired.digest == current?.digest, desired.file != nil { step.before = desired }
            }
            step.state = .replacing
            record.steps[name] = step
        }
        // Only the calls of the version that serves.
        var before = gateway.tally(of: module)
        if let beginning = beginnings[module], beginning.digest == current?.digest {
            before = before.since(beginning.tally)
        }
        do throws(FleetError) {
            try await replace(module, by: rollout.release, drain: .seconds(rollout.drain))
        } catch {
            if Task.isCancelled || error.isOvertaken { throw .overtaken }
            logger.error("The rollout of \(module) \(rollout.release.shown) fails here: \(error)")
            try await update(id) { record in record.beginRollback("\(name): \(error)", name) }
            return
        }
        logger.notice("\(module) \(rollout.release.shown) serves.")
        try? await publish()
        try await update(id) { record in record.steps[name]?.state = .observing }
        let (observed, problem, isCut) = await observe(rollout, before: Observation(before))
        if isCut { throw .overtaken }
        try await update(id) { record in
            record.steps[name]?.observed = observed
            if let problem {
                record.beginRollback("\(name): \(problem)", name)
            } else if record.state != .rollingBack {
                record.steps[name]?.state = .done
            }
        }
    }

    /// Observes a new version until it has served long enough, or exceeds a limit.
    private func observe(
        _ rollout: RolloutRecord, before: Observation
    ) async -> (Observation, problem: String?, isCut: Bool) {
        let (start, tally) = (ContinuousClock.now, gateway.tally(of: rollout.module))
        // Long enough for the balancer to notice that the host is back, before the next one leaves.
        let end = start + .seconds(max(rollout.soak, rollout.drain))
        var lastLook = start
        while true {
            let seen = gateway.tally(of: rollout.module).since(tally)
            let observed = Observation(seen.failing(after: rollout.longestCall(before)))
            if let problem = observed.problem(rollout.limits, before: before) { return (observed, problem, false) }
            guard served.named(rollout.module)?.record.release.digest == rollout.release.digest else {
                let error = gateway.host.modules.first { $0.name == rollout.module }?.error?.message
                return (observed, error ?? "the new version does not serve any more", false)
            }
            let now = ContinuousClock.now
            if now >= end {
                return (observed, observed.silence(of: seen.begun, seen.calls, rollout, before: before), false)
            }
            if Task.isCancelled { return (observed, nil, true) }
            if now - lastLook > .seconds(1) {
                lastLook = now
                // Somebody may have decided to roll back. Without etcd, the observation continues.
                if let record = try? await look().rollout, record.id != rollout.id || record.state == .rollingBack {
                    return (observed, nil, true)
                }
            }
            try? await Task.sleep(for: .milliseconds(50))
        }
    }

    private func rollBack(_ rollout: RolloutRecord) async throws(StepError) {
        guard let step = rollout.steps[name] else { return }
        do throws(FleetError) {
            try await rollBack(rollout, to: step.before, drain: .seconds(rollout.drain))
        } catch {
            if Task.isCancelled || error.isOvertaken { throw .overtaken }
            logger.error("\(rollout.module) cannot be rolled back: \(error)")
            stepProblem = "\(rollout.module) cannot be rolled back: \(error)"
            try await update(rollout.id) { record in
                record.steps[name]?.state = .failed
                record.steps[name]?.reason = error.description
            }
            return
        }
        logger.notice("\(rollout.module) serves \(step.before?.shown ?? "no longer") again.")
        try? await publish()
        // The balancer must notice that the host is back.
        try? await Task.sleep(for: .seconds(rollout.drain))
        try await update(rollout.id) { record in record.steps[name]?.state = .rolledBack }
    }

    /// Ends a rollout if all hosts have taken their steps.
    private func finish(_ snapshot: FleetSnapshot, _ rollout: RolloutRecord) async throws(EtcdError) -> Bool {
        var record = rollout
        var operations: [EtcdOperation] = []
        // Including those that are missing at the moment, unless they were dropped.
        guard rollout.awaitedHosts.isEmpty else { return false }
        if rollout.state == .running {
            guard snapshot.hosts.keys.allSatisfy({ rollout.steps[$0]?.state == .done }) else { return false }
            record.state = .done
            operations = [.put(keys.desired(rollout.module), Array(rollout.release.json.json.utf8))]
        } else {
            let present = rollout.steps.filter { snapshot.hosts[$0.key] != nil || !rollout.dropped.contains($0.key) }
            let steps = present.values.map(\.state)
            guard steps.allSatisfy({ $0 == .rolledBack || $0 == .failed }) else { return false }
            record.state = steps.contains(.failed) ? .failed : .rolledBack
        }
        operations.append(.put(keys.rollout, Array(record.json.json.utf8)))
        return try await etcd.transact(
            if: [.unchanged(keys.rollout, since: snapshot.rolloutRevision)], operations) != nil
    }
}

extension FleetMember.StepError {
    fileprivate static let mark = "overtaken"

    fileprivate var asEtcd: EtcdError {
        if case .etcd(let error) = self { error } else { EtcdError(.refused, Self.mark) }
    }
}

extension RolloutRecord {
    /// Makes all hosts roll back that have begun.
    fileprivate mutating func beginRollback(_ reason: String, _ host: String) {
        steps[host]?.reason = reason
        guard state == .running || state == .paused else { return }
        (state, self.reason) = (.rollingBack, reason)
    }
}

extension Observation {
    init(_ tally: CallTally) {
        self.init(
            calls: tally.calls, errors: tally.errors, latency: tally.percentile(0.99).map { $0 / .milliseconds(1) })
    }
}
