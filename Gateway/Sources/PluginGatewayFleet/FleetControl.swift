import Foundation
import PluginABI

/// What the operator of a fleet asks of it. All of it is done by writing to etcd: the hosts do the work.
public struct FleetControl: Sendable {
    private let etcd: Etcd
    private let keys: FleetKeys

    /// - Parameters:
    ///   - etcd: The client.
    ///   - prefix: The beginning of the keys, without a slash at its end.
    public init(_ etcd: Etcd, prefix: String) { (self.etcd, keys) = (etcd, FleetKeys(prefix: prefix)) }

    /// Returns what etcd says about the fleet.
    public func snapshot() async throws(EtcdError) -> FleetSnapshot { try await keys.snapshot(etcd) }

    /// Returns the SHA-256 of a file.
    ///
    /// - Parameter file: The path of the file.
    /// - Throws: A ``FleetError`` if it cannot be read, or is larger than 1 GiB.
    public static func digest(ofFile file: String) throws -> String { try ModuleFiles.digest(file) }

    /// Returns why something is not valid in a rollout; `nil` if it is.
    ///
    /// - Parameters:
    ///   - module: The name of the module.
    ///   - release: What is to serve.
    public static func problem(_ module: String, _ release: ModuleRelease) -> String? {
        guard ModuleRelease.isModule(module) else { return "“\(module.clean)” is not the name of a module." }
        guard ModuleRelease.isVersion(release.version) else { return "“\(release.version.clean)” is not a version." }
        guard ModuleRelease.isDigest(release.digest) else {
            return "“\(release.digest.clean)” is not a SHA-256: 64 lower-case hexadecimal digits."
        }
        guard let file = release.file, ModuleRelease.isFile(file) else {
            return "“\((release.file ?? "").clean)” is not the name of a file in the store: without “/”, not hidden."
        }
        return nil
    }

    /// Begins a rollout. The hosts do it one after the other.
    ///
    /// - Parameters:
    ///   - module: The module.
    ///   - release: What is to serve, with its file in the store.
    ///   - drain: How long each host is out of the balancer before it replaces the module, in seconds.
    ///   - soak: How long each host observes the new version, in seconds.
    ///   - limits: When it is good enough.
    /// - Returns: The record, as it was written.
    /// - Throws: A ``FleetError`` if there is no host, or another rollout; an ``EtcdError``.
    public func rollOut(
        _ module: String, _ release: ModuleRelease, drain: Double, soak: Double, limits: RolloutRecord.Limits
    ) async throws -> RolloutRecord {
        if let problem = Self.problem(module, release) { throw FleetError(problem) }
        var record = RolloutRecord(
            id: String(UInt64.random(in: .min ... .max), radix: 16), module: module, release: release, drain: drain,
            soak: soak, limits: limits)
        for _ in 0..<20 {
            let snapshot = try await snapshot()
            if snapshot.rollout?.id == record.id { return record }
            try checkFree(snapshot)
            record.hosts = Set(snapshot.hosts.keys)
            guard !snapshot.hosts.isEmpty else {
                throw FleetError("No host of the fleet is known under \(keys.hosts).")
            }
            var operations: [EtcdOperation] = [.put(keys.rollout, Array(record.json.json.utf8))]
            // A host that comes while this goes on, or comes back after it went back, needs to know what was there.
            let before = snapshot.hosts.values.map { $0.modules.first { $0.name == module }?.release }
            if snapshot.desired[module] == nil, let first = before.first ?? nil, before.allSatisfy({ $0 == first }) {
                operations.append(.put(keys.desired(module), Array(first.json.json.utf8)))
            }
            if try await write(operations, since: snapshot) { return record }
            // It may have been written although no answer came.
            if try await self.snapshot().rollout?.id == record.id { return record }
        }
        throw FleetError("The record of the rollout changes all the time. Look at “fleet status”.")
    }

    /// Writes the record of the rollout, and more, unless it has changed.
    ///
    /// - Returns: Whether it was written; false if that is unknown.
    private func write(_ operations: [EtcdOperation], since snapshot: FleetSnapshot) async throws(EtcdError) -> Bool {
        do throws(EtcdError) {
            let condition = EtcdCondition.unchanged(keys.rollout, since: snapshot.rolloutRevision)
            return try await etcd.transact(if: [condition], operations) != nil
        } catch {
            guard error.code == .unknown else { throw error }
            return false
        }
    }

    private func checkFree(_ snapshot: FleetSnapshot) throws(FleetError) {
        if snapshot.hasUnreadableRollout {
            throw FleetError(
                "The key \(keys.rollout) cannot be read. Look at it, and delete it if it is not needed: etcdctl del \(keys.rollout)"
            )
        }
        if let other = snapshot.rollout, other.isActive {
            throw FleetError(
                "The rollout of \(other.module) \(other.release.shown) is \(other.state.shown). Wait for its end, or end it "
                    + "by “fleet back”.")
        }
    }

    /// Lets no further host begin.
    public func pause() async throws -> RolloutRecord { try await change(from: [.running], to: .paused) }

    /// Lets a paused rollout go on.
    public func resume() async throws -> RolloutRecord { try await change(from: [.paused], to: .running) }

    /// Lets the rollout go on without a host that is away. A paused one goes on, too. If the host returns, it takes part
    /// again, or does what the others have done.
    ///
    /// - Parameter host: The name of the host.
    /// - Throws: A ``FleetError`` if the rollout does not wait for the host, or the host is known; an ``EtcdError``.
    public func resume(without host: String) async throws -> RolloutRecord {
        try await change(from: [.running, .paused, .goingBack], to: nil) { record, snapshot throws(FleetError) in
            guard snapshot.hosts[host] == nil else { throw FleetError("The host \(host.clean) is known, and does its step.") }
            guard record.hosts.contains(host) || record.steps[host] != nil else {
                throw FleetError("The rollout does not wait for a host “\(host.clean)”.")
            }
            record.dropped.insert(host)
            if record.state == .paused { record.state = .running }
        }
    }

    /// Lets all hosts go back that have begun, or have done, the current or last rollout.
    ///
    /// - Parameter reason: The reason that is shown.
    public func goBack(reason: String) async throws -> RolloutRecord {
        try await change(from: [.running, .paused, .done], to: .goingBack, reason: reason)
    }

    /// - Parameters:
    ///   - states: The states in which it can be changed.
    ///   - state: The new state; `nil` if the closure decides.
    ///   - reason: The reason that is shown.
    ///   - edit: Changes the record.
    private func change(
        from states: [RolloutRecord.State], to state: RolloutRecord.State?, reason: String? = nil,
        _ edit: (inout RolloutRecord, FleetSnapshot) throws(FleetError) -> Void = { _, _ in }
    ) async throws -> RolloutRecord {
        for _ in 0..<20 {
            let snapshot = try await snapshot()
            if snapshot.hasUnreadableRollout { try checkFree(snapshot) }
            guard var record = snapshot.rollout else { throw FleetError("There is no rollout.") }
            if record.state == state { return record }
            guard states.contains(record.state) else {
                throw FleetError(
                    "The rollout of \(record.module) \(record.release.shown) is \(record.state.shown), not "
                        + states.map(\.shown).joined(separator: " or ") + ".")
            }
            var operations: [EtcdOperation] = []
            if record.state == .done, state == .goingBack {
                // What was there before is desired again.
                let before = Set(record.steps.values.map(\.before))
                if before.count == 1, let release = before.first ?? nil {
                    operations.append(.put(keys.desired(record.module), Array(release.json.json.utf8)))
                } else {
                    operations.append(.delete(keys.desired(record.module)))
                }
            }
            if let state { record.state = state }
            try edit(&record, snapshot)
            if let reason { record.reason = reason }
            operations.append(.put(keys.rollout, Array(record.json.json.utf8)))
            if try await write(operations, since: snapshot) { return record }
        }
        throw FleetError("The record of the rollout changes all the time. Look at “fleet status”.")
    }
}

extension RolloutRecord.State {
    /// The state as it is shown to people.
    public var shown: String {
        switch self {
        case .goingBack: "going back"
        case .wentBack: "taken back"
        default: rawValue
        }
    }
}
