import Foundation
import PluginABI

/// The operations of a fleet's operator. They only write to etcd: the hosts do the work.
public struct FleetControl: Sendable {
    private let etcd: Etcd
    private let keys: FleetKeys

    /// - Parameters:
    ///   - etcd: The client.
    ///   - prefix: The beginning of the keys, without a slash at its end.
    public init(_ etcd: Etcd, prefix: String) { (self.etcd, keys) = (etcd, FleetKeys(prefix: prefix)) }

    /// Returns the state of the fleet in etcd.
    public func snapshot() async throws(EtcdError) -> FleetSnapshot { try await keys.snapshot(etcd) }

    /// Returns the SHA-256 of a file.
    ///
    /// - Parameter file: The path of the file.
    /// - Throws: A ``FleetError`` if it cannot be read, or is larger than 1 GiB.
    public static func digest(ofFile file: String) throws -> String { try ModuleFiles.digest(file) }

    /// Returns why a module or a release is not valid for a rollout; `nil` if both are.
    ///
    /// - Parameters:
    ///   - module: The name of the module.
    ///   - release: The release to serve.
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

    /// Begins a rollout. The hosts take their steps one after the other.
    ///
    /// - Parameters:
    ///   - module: The module.
    ///   - release: The release to serve, with its file in the store.
    ///   - drain: How long each host is out of the balancer before it replaces the module, in seconds.
    ///   - soak: How long each host observes the new version, in seconds.
    ///   - limits: The limits that the new version must not exceed.
    ///   - store: The folder of the store, if it can be read here, to find the file of the previous release.
    /// - Returns: The record, as it was written.
    /// - Throws: A ``FleetError`` if there is no host, or another rollout; an ``EtcdError``, with
    ///   ``EtcdError/Code/unknown`` if the rollout may have begun.
    public func rollOut(
        _ module: String, _ release: ModuleRelease, drain: Double, soak: Double, limits: RolloutRecord.Limits,
        store: String? = nil
    ) async throws -> RolloutRecord {
        if let problem = Self.problem(module, release) { throw FleetError(problem) }
        var record = RolloutRecord(
            id: String(UInt64.random(in: .min ... .max), radix: 16), module: module, release: release, drain: drain,
            soak: soak, limits: limits)
        let shown = "the rollout of \(module) \(release.shown) with the id \(record.id) has begun"
        var isUnknown = false
        for _ in 0..<20 {
            let snapshot = try await snapshot(whether: isUnknown ? shown : nil)
            if snapshot.rollout?.id == record.id { return record }
            try checkFree(snapshot)
            record.hosts = Set(snapshot.hosts.keys)
            guard !snapshot.hosts.isEmpty else {
                throw FleetError("No host of the fleet is known under \(keys.hosts).")
            }
            var operations: [EtcdOperation] = [.put(keys.rollout, Array(record.json.json.utf8))]
            // A host that joins during the rollout, or returns after it was rolled back, needs to know what was desired
            // before.
            let before = snapshot.hosts.values.map { $0.modules.first { $0.name == module }?.release }
            if snapshot.desired[module] == nil, let first = before.first ?? nil, before.allSatisfy({ $0 == first }) {
                let found = ModuleFiles.find(module, first, in: store)
                operations.append(.put(keys.desired(module), Array(found.json.json.utf8)))
            }
            switch try await write(operations, since: snapshot) {
            case true?: return record
            case false?: break
            // The record may have been written although no answer arrived.
            case nil: isUnknown = true
            }
        }
        throw FleetError("The record of the rollout changes all the time. Look at “fleet status”.")
    }

    /// Writes the record of the rollout, with other operations, unless the record has changed.
    ///
    /// - Returns: Whether it was written; `nil` if that is unknown.
    private func write(_ operations: [EtcdOperation], since snapshot: FleetSnapshot) async throws(EtcdError) -> Bool? {
        do throws(EtcdError) {
            let condition = EtcdCondition.unchanged(keys.rollout, since: snapshot.rolloutRevision)
            return try await etcd.transact(if: [condition], operations) != nil
        } catch {
            guard error.code == .unknown else { throw error }
            return nil
        }
    }

    /// Reads the state of the fleet. After a write without an answer, waits some seconds for etcd.
    ///
    /// - Parameter what: What the write should have done, as the end of a sentence, if its answer was lost.
    private func snapshot(whether what: String?) async throws -> FleetSnapshot {
        guard let what else { return try await snapshot() }
        var reason = ""
        for _ in 0..<5 {
            do throws(EtcdError) { return try await snapshot() } catch { reason = error.description }
            try await Task.sleep(for: .seconds(1))
        }
        throw EtcdError(
            .unknown, "It is unknown whether \(what). See “fleet status” when etcd answers again. \(reason)")
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
                    + "with “fleet back”.")
        }
    }

    /// Keeps further hosts from beginning.
    public func pause() async throws -> RolloutRecord { try await change(from: [.running], to: .paused) }

    /// Continues a paused rollout.
    public func resume() async throws -> RolloutRecord { try await change(from: [.paused], to: .running) }

    /// Continues the rollout without a host that is missing, even if the rollout is paused. If the host returns, it
    /// takes part again, or does what the others have done.
    ///
    /// - Parameter host: The name of the host.
    /// - Throws: A ``FleetError`` if the rollout does not wait for the host, or the host is known; an ``EtcdError``.
    public func resume(without host: String) async throws -> RolloutRecord {
        try await change(from: [.running, .paused, .rollingBack], to: nil) { record, snapshot throws(FleetError) in
            guard snapshot.hosts[host] == nil else {
                throw FleetError("The host \(host.clean) is known, and does its step.")
            }
            guard record.hosts.contains(host) || record.steps[host] != nil else {
                throw FleetError("The rollout does not wait for a host “\(host.clean)”.")
            }
            record.dropped.insert(host)
            if record.state == .paused { record.state = .running }
        }
    }

    /// Makes all hosts roll back that have taken their step of the current or last rollout, or have begun it.
    ///
    /// - Parameter reason: The reason to display.
    public func rollBack(reason: String) async throws -> RolloutRecord {
        try await change(from: [.running, .paused, .done], to: .rollingBack, reason: reason)
    }

    /// Waits until no host serves the version of a rollout that was rolled back: those that came later follow by what is
    /// desired.
    ///
    /// - Parameter record: The record of the rollout.
    /// - Returns: The hosts that still serve it after 30 seconds, or say that they cannot follow, with their problems.
    /// - Throws: An ``EtcdError``.
    public func hostsLeft(by record: RolloutRecord) async throws -> [String] {
        let end = ContinuousClock.now + .seconds(30)
        while true {
            let snapshot = try await snapshot()
            let left = snapshot.hosts.values.filter { host in
                record.steps[host.name]?.before?.digest != record.release.digest
                    && host.modules.contains { $0.name == record.module && $0.release.digest == record.release.digest }
            }
            let isOver = left.allSatisfy { $0.problem != nil } || ContinuousClock.now > end
            if isOver { return left.map { "\($0.name): \($0.problem ?? "still serves it")" }.sorted() }
            try await Task.sleep(for: .milliseconds(250))
        }
    }

    /// - Parameters:
    ///   - states: The states in which it can be changed.
    ///   - state: The new state; `nil` if the closure sets it.
    ///   - reason: The reason to display.
    ///   - edit: Changes the record.
    private func change(
        from states: [RolloutRecord.State], to state: RolloutRecord.State?, reason: String? = nil,
        _ edit: (inout RolloutRecord, FleetSnapshot) throws(FleetError) -> Void = { _, _ in }
    ) async throws -> RolloutRecord {
        var isUnknown = false
        for _ in 0..<20 {
            let snapshot = try await snapshot(whether: isUnknown ? "the rollout was changed" : nil)
            if snapshot.hasUnreadableRollout { try checkFree(snapshot) }
            guard var record = snapshot.rollout else { throw FleetError("There is no rollout.") }
            if record.state == state { return record }
            guard states.contains(record.state) else {
                throw FleetError(
                    "The rollout of \(record.module) \(record.release.shown) is \(record.state.shown), not "
                        + states.map(\.shown).joined(separator: " or ") + ".")
            }
            var operations: [EtcdOperation] = []
            if record.state == .done, state == .rollingBack {
                // The previous version is desired again.
                let before = record.steps.values.map(\.before)
                if Set(before.map { $0?.digest }).count == 1,
                    let release = before.first(where: { $0?.file != nil }) ?? before.first ?? nil
                {
                    operations.append(.put(keys.desired(record.module), Array(release.json.json.utf8)))
                } else {
                    operations.append(.delete(keys.desired(record.module)))
                }
            }
            if let state { record.state = state }
            try edit(&record, snapshot)
            if let reason { record.reason = reason }
            operations.append(.put(keys.rollout, Array(record.json.json.utf8)))
            switch try await write(operations, since: snapshot) {
            case true?: return record
            case false?: break
            case nil: isUnknown = true
            }
        }
        throw FleetError("The record of the rollout changes all the time. Look at “fleet status”.")
    }
}

extension RolloutRecord.State {
    /// The state as it is displayed.
    public var shown: String {
        switch self {
        case .rollingBack: "rolling back"
        case .rolledBack: "rolled back"
        default: rawValue
        }
    }
}

extension RolloutRecord.Step.State {
    /// The state as it is displayed.
    public var shown: String { self == .rolledBack ? "rolled back" : rawValue }
}
