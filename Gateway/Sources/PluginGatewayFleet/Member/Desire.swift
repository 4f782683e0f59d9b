import Foundation
import Logging

extension FleetMember {
    /// Brings a starting host to what is desired, before it is put into the balancer.
    func join() async {
        let asking = Task { try? await look() }
        let timer = Task { [timeout = configuration.joinTimeout] in
            try await Task.sleep(for: timeout)
            asking.cancel()
        }
        let snapshot = await withTaskCancellationHandler {
            await asking.value
        } onCancel: {
            asking.cancel()
        }
        timer.cancel()
        guard let snapshot else {
            logger.warning("The fleet is not known at the start: etcd does not answer. This host serves what it has.")
            return
        }
        if let rollout = snapshot.rollout, [.goingBack, .wentBack, .failed].contains(rollout.state),
            let step = rollout.steps[name], step.state != .back, step.state != .failed
        {
            try? await goBack(rollout.module, to: step.before, drain: nil)
        }
        for (module, release) in wanted(snapshot) { await pursue(module, release, drain: nil) }
    }

    /// The desired releases that do not serve. The module of an active rollout is not among them.
    private func wanted(_ snapshot: FleetSnapshot) -> [(String, ModuleRelease)] {
        let rolling = snapshot.rollout.flatMap { $0.isActive ? $0.module : nil }
        return snapshot.desired.sorted { $0.key < $1.key }.filter { module, release in
            if module == rolling { return false }
            if let failed = failedReleases[module], failed.release == release, ContinuousClock.now < failed.until {
                return false
            }
            return served.named(module)?.record.release.digest != release.digest
        }
    }

    /// Replaces a module whose release is not the desired one, while no other host does a step.
    ///
    /// - Returns: Whether something was done.
    func pursue(_ snapshot: FleetSnapshot) async throws(EtcdError) -> Bool {
        guard let (module, release) = wanted(snapshot).first else {
            if problem != nil, failedReleases.isEmpty, snapshot.rollout?.steps[name]?.state != .failed { problem = nil }
            return false
        }
        return try await locked { () async throws(StepError) in
            await self.pursue(module, release, drain: self.configuration.drain)
        }
    }

    private func pursue(_ module: String, _ release: ModuleRelease, drain: Duration?) async {
        do throws(FleetError) {
            try await replace(module, by: release, drain: drain)
            logger.notice("\(module) \(release.shown), which is desired, serves.")
            failedReleases[module] = nil
            if failedReleases.isEmpty { problem = nil }
        } catch {
            failedReleases[module] = (release, .now + .seconds(30))
            problem = "\(module) \(release.shown) is desired: \(error)"
            logger.error("\(problem ?? "")")
        }
    }
}
