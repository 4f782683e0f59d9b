import Foundation
import Logging
import PluginGateway
import PluginHost

extension FleetMember {
    /// Makes a starting host serve the desired releases, before it is put into the balancer.
    func join() async {
        for folder in gateway.host.configuration.folders { ModuleFiles.removeCopies(in: folder) }
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
        if let rollout = snapshot.rollout, [.rollingBack, .rolledBack, .failed].contains(rollout.state),
            let step = rollout.steps[name], step.state != .rolledBack, step.state != .failed
        {
            try? await rollBack(rollout, to: step.before, drain: nil)
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

    /// Replaces a module whose release is not the desired one, while no other host takes a step.
    ///
    /// - Returns: Whether something was done.
    func pursue(_ snapshot: FleetSnapshot) async throws(EtcdError) -> Bool {
        failedReleases = failedReleases.filter { module, failed in
            snapshot.desired[module] == failed.release
                && served.named(module)?.record.release.digest != failed.release.digest
        }
        guard let (module, release) = wanted(snapshot).first else { return false }
        let isCurrent: @Sendable (FleetSnapshot) -> Bool = { snapshot in
            snapshot.desired[module] == release
                && (snapshot.rollout?.module != module || snapshot.rollout?.isActive == false)
        }
        return try await locked(while: isCurrent) { () async throws(StepError) in
            guard await self.pursue(module, release, drain: self.configuration.drain) else { throw .overtaken }
        }
    }

    /// - Returns: Whether the replacement was tried; false if another host has taken over the step.
    @discardableResult
    private func pursue(_ module: String, _ release: ModuleRelease, drain: Duration?) async -> Bool {
        do throws(FleetError) {
            try await replace(module, by: release, drain: drain)
            logger.notice("\(module) \(release.shown) serves, as desired.")
            failedReleases[module] = nil
        } catch {
            if error.isOvertaken { return false }
            let reason = "\(module) \(release.shown) is desired: \(error)"
            failedReleases[module] = (release, reason, .now + .seconds(30))
            logger.error("\(reason)")
        }
        return true
    }
}
