import Foundation
import Logging
import PluginABI
import PluginGateway
import PluginHost
import Synchronization

extension FleetMember {
    /// Makes the host serve a release of a module, and waits until it does.
    ///
    /// - Parameters:
    ///   - module: The module.
    ///   - release: The release.
    ///   - drain: How long the host leaves the balancer first, if others are ready; `nil` if it is not in the balancer.
    /// - Throws: A ``FleetError``. The host then serves what it did before, or a version other than the requested one.
    func replace(_ module: String, by release: ModuleRelease, drain: Duration?) async throws(FleetError) {
        let current = served.named(module)
        if current?.record.release.digest == release.digest { return }
        let path = try path(of: module)
        if current == nil { try await blocking { [host = gateway.host] in try Self.checkPath(path, module, host) } }
        guard release.file != nil, let store = configuration.store else {
            guard current?.record.release.version != nil else {
                throw FleetError("It is not known which file of the store has \(module) \(release.shown).")
            }
            return try await outOfBalancer(drain) { () throws(FleetError) in
                try await self.rollBackToKept(module, to: release)
            }
        }
        let folder = try folder(of: module)
        // The host is not taken out yet, so that a missing or wrong file changes nothing.
        let copy = try await blocking { try ModuleFiles.stage(release, from: store, into: folder) }
        // Unless it has already been put in place.
        defer { unlink(copy) }
        try await outOfBalancer(drain) { () throws(FleetError) in
            let failures = Failures(self.gateway.host, path)
            defer { failures.end() }
            try await self.blocking {
                if let current { ModuleFiles.keep(current.record, of: path) }
                try ModuleFiles.put(copy, at: path)
            }
            try await self.wait(for: module, release, path, failures)
        }
    }

    /// Makes the host serve what it served before a rollout.
    ///
    /// - Parameters:
    ///   - rollout: The rollout.
    ///   - release: What it served; `nil` if it did not have the module.
    ///   - drain: As for ``replace(_:by:drain:)``.
    func rollBack(_ rollout: RolloutRecord, to release: ModuleRelease?, drain: Duration?) async throws(FleetError) {
        let module = rollout.module
        guard let release else {
            guard served.named(module) != nil else {
                // Removes the new file, if it does not start.
                guard let path = try? path(of: module) else { return }
                return try await blocking {
                    if (try? ModuleFiles.digest(path)) == rollout.release.digest { unlink(path) }
                }
            }
            return try await outOfBalancer(drain) { () throws(FleetError) in
                try await self.blocking { [host = self.gateway.host] in _ = try host.remove(module) }
            }
        }
        let current = served.named(module)
        let isServing = current?.record.release.digest == release.digest
        // The host may serve the old version although the file in its folder is the new one, if the new one does not
        // start.
        if isServing, let path = current?.path, (try? ModuleFiles.digest(path)) == release.digest { return }
        do {
            try await outOfBalancer(isServing ? nil : drain) { () throws(FleetError) in
                try await self.rollBackToKept(module, to: release)
            }
            ModuleFiles.forget(module, in: try folder(of: module))
        } catch {
            if error.isOvertaken { throw error }
            logger.notice("\(module) is not rolled back to a kept version: \(error)")
            let path = try path(of: module)
            if let copy = ModuleFiles.kept(module, release, in: try folder(of: module)) {
                return try await outOfBalancer(drain) { () throws(FleetError) in
                    let failures = Failures(self.gateway.host, path)
                    defer { failures.end() }
                    try await self.blocking { try ModuleFiles.put(copy, at: path) }
                    try await self.wait(for: module, release, path, failures)
                }
            }
            guard release.file != nil else { throw error }
            try await replace(module, by: release, drain: drain)
        }
    }

    private func folder(of module: String) throws(FleetError) -> String {
        URL(filePath: try path(of: module)).deletingLastPathComponent().path
    }

    /// Puts back the kept version that has a digest.
    private func rollBackToKept(_ module: String, to release: ModuleRelease) async throws(FleetError) {
        let isServing = served.named(module)?.record.release.digest == release.digest
        try await blocking { [host = gateway.host] in
            _ = try host.rollback(module, to: isServing ? nil : release.version)
        }
        guard let now = served.named(module)?.record.release, now.digest == release.digest else {
            throw FleetError(
                "The kept version \(release.version) of \(module) is not the one with the digest \(release.digest).")
        }
    }

    /// The path of a module's file, or the path at which it will be put.
    private func path(of module: String) throws(FleetError) -> String {
        let modules = gateway.host.modules.filter { $0.name == module }
        let status = modules.first { $0.state == .active || $0.state == .registered } ?? modules.first
        guard let status else {
            guard let folder = gateway.host.configuration.folders.first else {
                throw FleetError("The host has no plugins folder.")
            }
            return "\(folder)/\(module).so"
        }
        guard status.file.hasPrefix("/") else {
            throw FleetError("\(module) is a part of the program, and has no file that could be replaced.")
        }
        return status.file
    }

    /// Throws an error if there is a file at the path for a module that does not serve, and the file does not contain
    /// the module.
    private static func checkPath(_ path: String, _ module: String, _ host: PluginHost) throws {
        var status = stat()
        guard lstat(path, &status) == 0 else { return }
        let served = host.modules.first { $0.file == path }?.name
        let name =
            served ?? (try? PluginHost.inspect(file: path, trustsEveryone: true).json["manifest"])?["name"]?.string
        guard name != module else { return }
        throw FleetError(
            "The file \(path), which \(module) would replace, is \(name.map { "the module \($0)" } ?? "not a module that can be read")"
                + ". Rename or remove it.")
    }

    /// Takes the host out of the balancer while `body` runs, if another host is ready to serve in its place.
    /// Immediately before, checks whether this is still necessary.
    private func outOfBalancer(
        _ drain: Duration?, _ body: () async throws(FleetError) -> Void
    ) async throws(FleetError) {
        var isOut = false
        if let drain, let hosts = try? await look().hosts,
            hosts.values.contains(where: { $0.name != name && $0.state == .ready })
        {
            isOut = true
            state = .replacing
            gateway.takeOut(true)
            try? await publish()
            try? await Task.sleep(for: drain)
        }
        defer {
            if isOut {
                state = .ready
                gateway.takeOut(false)
            }
        }
        try await checkStep()
        try await body()
    }

    /// Waits until a release serves.
    private func wait(
        for module: String, _ release: ModuleRelease, _ path: String, _ failures: Failures
    ) async throws(FleetError) {
        let end = ContinuousClock.now + configuration.replaceTimeout
        while true {
            let now = served.named(module)?.record
            if let now, now.release.digest == release.digest {
                if now.release.version == release.version { return }
                // The file of a module that has not started is known before its version.
                if now.generation > 0 {
                    throw FleetError(
                        "The file \(release.file ?? "") is \(module) \(now.release.version), not \(release.version).")
                }
            }
            if let reason = failures.reason { throw FleetError("\(module) \(release.shown) does not start: \(reason)") }
            if let other = gateway.host.modules.first(where: { $0.file == path })?.name, other != module {
                throw FleetError("The file \(release.file ?? "") is the module \(other), not \(module).")
            }
            guard ContinuousClock.now < end, !Task.isCancelled else {
                throw FleetError(
                    "\(module) \(release.shown) does not serve within \(configuration.replaceTimeout) after its file was put "
                        + "into the plugins folder; \(now?.release.version ?? "no version") serves.")
            }
            try? await Task.sleep(for: .milliseconds(25))
        }
    }

    /// Runs a body that blocks on a thread of its own.
    private func blocking<Result: Sendable>(
        _ body: @escaping @Sendable () throws -> Result
    ) async throws(FleetError) -> Result {
        do {
            return try await onThread(body)
        } catch let error as FleetError {
            throw error
        } catch let error as PluginError {
            throw FleetError(error.message)
        } catch {
            throw FleetError("\(error)")
        }
    }
}

/// Whether the host says that a file cannot be served.
private final class Failures: Sendable {
    private final class Found: Sendable {
        let reason = Mutex<String?>(nil)
    }

    private let found = Found()
    private let task: Task<Void, Never>

    init(_ host: PluginHost, _ path: String) {
        let (changes, found) = (host.changes, found)
        task = Task {
            for await change in changes {
                guard case .failed(let status, _) = change, status.file == path else { continue }
                found.reason.withLock { $0 = $0 ?? status.error?.message ?? "\(status.state)" }
            }
        }
    }

    var reason: String? { found.reason.withLock { $0 } }

    func end() { task.cancel() }
}
