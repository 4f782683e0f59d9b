import Foundation
public import Logging
import PluginABI
public import PluginGateway
import PluginHost
public import ServiceLifecycle

/// A host that takes part in a fleet: it reports to etcd what it serves, switches to the desired releases, and takes
/// its steps of rollouts. It is a service of the group that runs the gateway, after
/// ``/PluginGateway/PluginGateway/readiness``.
///
/// The gateway is taken out (`/readyz` answers 503) until the host has started and serves the desired releases, if etcd
/// answers within ``FleetConfiguration/joinTimeout``. Calls never wait for etcd.
public actor FleetMember: ServiceLifecycle.Service {
    let configuration: FleetConfiguration
    let gateway: PluginGateway
    let etcd: Etcd
    let keys: FleetKeys
    let logger: Logger
    let served: ServedModules

    /// The lease of the host; 0 for none.
    var lease = 0
    var state = HostRecord.State.starting
    /// Why the host cannot take part in the rollout.
    var stepProblem: String?
    /// The step that the host is taking, while it holds the lock.
    var step: StepInProgress?
    /// How long the host waits after another host has taken over its step.
    var overtakenPause = Pause()
    /// Distinguishes this process from others with the same name.
    private let process = String(UInt64.random(in: .min ... .max), radix: 16)
    /// What was last written to etcd under ``lease``.
    private var published: HostRecord?
    /// Desired releases that could not be served, why, and when they are tried again.
    var failedReleases: [String: (release: ModuleRelease, reason: String, until: ContinuousClock.Instant)] = [:]
    /// The calls of each module when its release was first seen to serve.
    var beginnings: [String: (digest: String, tally: CallTally)] = [:]
    /// The state of the fleet that etcd returned last.
    private var known = FleetSnapshot()
    private var reported: [String: String] = [:]

    private let wakes: AsyncStream<Void>
    private let waker: AsyncStream<Void>.Continuation

    /// Creates a member, and takes the gateway out until it has joined.
    ///
    /// - Parameters:
    ///   - gateway: The gateway.
    ///   - configuration: The settings.
    ///   - logger: The log.
    /// - Throws: An ``EtcdError`` if a file for TLS cannot be used.
    public init(
        _ gateway: PluginGateway, _ configuration: FleetConfiguration,
        logger: Logger = Logger(label: "PluginGatewayFleet")
    ) throws(EtcdError) {
        (self.gateway, self.configuration, self.logger) = (gateway, configuration, logger)
        etcd = try Etcd(configuration.etcd)
        keys = FleetKeys(prefix: configuration.prefix)
        served = ServedModules(gateway.host)
        (wakes, waker) = AsyncStream.makeStream(bufferingPolicy: .bufferingNewest(1))
        gateway.takeOut(true)
    }

    var name: String { configuration.name }

    /// Why the host does not serve a desired release; `nil` if it serves them all.
    var problem: String? { stepProblem ?? failedReleases.min { $0.key < $1.key }?.value.reason }

    /// Runs until the group ends, or the task is cancelled.
    public func run() async {
        _ = try? await cancelWhenGracefulShutdown { try await self.takePart() }
        gateway.takeOut(true)
        await leave()
        await etcd.close()
    }

    private func takePart() async throws {
        let changes = gateway.host.changes
        while !gateway.hasStarted { try await Task.sleep(for: .milliseconds(20)) }
        await join()
        try Task.checkCancellation()
        state = .ready
        gateway.takeOut(false)
        await withTaskGroup { group in
            group.addTask { await self.keepLease() }
            group.addTask { await self.watch() }
            group.addTask { await self.tick() }
            group.addTask { [waker] in for await _ in changes { waker.yield() } }
            group.addTask { await self.work() }
        }
    }

    // MARK: The lease

    /// Keeps the lease alive, and creates a new one if it has expired.
    private func keepLease() async {
        var pause = Pause()
        while !Task.isCancelled {
            do throws(EtcdError) {
                let isNew = lease == 0
                if isNew {
                    lease = try await etcd.grantLease(configuration.leaseSeconds)
                } else {
                    try await etcd.keepAlive(lease)
                }
                try await publish()
                if isNew { waker.yield() }
                pause = Pause()
                report("etcd", nil)
                try? await Task.sleep(for: .seconds(configuration.leaseSeconds) / 3)
            } catch {
                if error.code == .leaseNotFound { forgetLease() }
                show(known, isKnown: false)
                report("etcd", "The fleet is not known, and this host serves what it has: \(error)")
                await pause.wait()
            }
        }
    }

    private func forgetLease() { (lease, published) = (0, nil) }

    /// Writes the record of this host, if it has changed.
    func publish() async throws(EtcdError) {
        guard lease != 0 else { return }
        let modules = (try? await onThread { [served] in served.all() }) ?? []
        for module in modules.map(\.record) where beginnings[module.name]?.digest != module.release.digest {
            beginnings[module.name] = (module.release.digest, gateway.tally(of: module.name))
        }
        if beginnings.count > modules.count {
            let names = Set(modules.map(\.record.name))
            beginnings = beginnings.filter { names.contains($0.key) }
        }
        var record = HostRecord(
            name: name, address: configuration.address, state: state,
            modules: modules.map(\.record).sorted { $0.name < $1.name }, problem: problem)
        record.process = process
        guard record != published else { return }
        let (key, value, lease) = (keys.host(name), Array(record.json.json.utf8), lease)
        do throws(EtcdError) {
            var condition = EtcdCondition.held(key, by: lease)
            if published == nil {
                let other = try await etcd.get(key)
                try checkIsFree(other, lease)
                condition = .unchanged(key, since: other?.modified ?? 0)
            }
            guard try await etcd.transact(if: [condition], [.put(key, value, lease: lease)]) != nil else {
                published = nil
                throw EtcdError(.refused, "The key \(key) of this host was changed by somebody else.")
            }
        } catch {
            if error.code == .leaseNotFound { forgetLease() }
            throw error
        }
        if lease == self.lease { published = record }
    }

    /// Throws an error if the key of this host belongs to another process. A key without a lease does not belong to a
    /// host.
    private func checkIsFree(_ other: EtcdEntry?, _ lease: Int) throws(EtcdError) {
        guard let other, other.lease != 0, other.lease != lease else { return }
        let value = FleetKeys.value(other.value)
        guard value?["process"]?.string != process else { return }
        throw EtcdError(
            .refused,
            "Another host, at \(value?["address"]?.string?.clean ?? "an unknown address"), has the name “\(name)”. Give "
                + "this one another name, or wait until that one is gone; if it was killed, until its lease expires.")
    }

    /// Whether the other hosts know this one.
    var isKnown: Bool { lease != 0 && published != nil }

    /// Gives up the lease, so that the other hosts do not wait for it.
    private func leave() async {
        let (etcd, lease) = (etcd, lease)
        guard lease != 0 else { return }
        let leaving = Task { try? await etcd.revoke(lease) }
        let timer = Task {
            try await Task.sleep(for: .seconds(1))
            leaving.cancel()
        }
        _ = await leaving.value
        timer.cancel()
    }

    // MARK: Waking up

    private func watch() async {
        var pause = Pause()
        while !Task.isCancelled {
            let start = ContinuousClock.now
            await withTaskGroup { [etcd, keys, waker] group in
                group.addTask { try? await etcd.watch(keys.all) { waker.yield() } }
                // A connection can be lost unnoticed.
                group.addTask { try? await Task.sleep(for: .seconds(.random(in: 60...90))) }
                await group.next()
                group.cancelAll()
            }
            if ContinuousClock.now - start > .seconds(10) { pause = Pause() }
            await pause.wait()
        }
    }

    private func tick() async {
        while !Task.isCancelled {
            try? await Task.sleep(for: configuration.pollInterval * Double.random(in: 0.7...1))
            waker.yield()
        }
        waker.finish()
    }

    private func work() async {
        for await _ in wakes where !Task.isCancelled {
            do throws(EtcdError) {
                repeat { try await publish() } while try await act(try await look()) && !Task.isCancelled
                // Reports why the host cannot take its step.
                try await publish()
            } catch {
                logger.debug("\(error)")
            }
        }
    }

    /// Reads the state of the fleet, and reports keys that cannot be read.
    func look() async throws(EtcdError) -> FleetSnapshot {
        let snapshot = try await keys.snapshot(etcd)
        known = snapshot
        if published != nil, lease != 0, snapshot.hostLeases[name] != lease,
            try await etcd.get(keys.host(name))?.lease != lease
        {
            // Somebody has deleted or overwritten the key.
            published = nil
            waker.yield()
        }
        show(snapshot, isKnown: true)
        report("keys", snapshot.problems.isEmpty ? nil : snapshot.problems.prefix(5).joined(separator: " "))
        return snapshot
    }

    /// Shows the fleet on the page of the gateway.
    private func show(_ snapshot: FleetSnapshot, isKnown: Bool) {
        var entries = snapshot.json.map ?? [:]
        (entries["self"], entries["isKnown"]) = (.string(name), .bool(isKnown))
        gateway.showFleet(.map(entries))
    }

    /// Logs a problem when it arises, and when it is over.
    func report(_ topic: String, _ text: String?) {
        guard reported[topic] != text else { return }
        // The reason of an error may differ each time.
        let isNew = reported[topic] == nil || topic != "etcd"
        reported[topic] = text
        if let text {
            if isNew { logger.warning("\(text)") }
        } else {
            logger.notice(topic == "etcd" ? "The fleet is known again." : "The keys of the fleet can be read again.")
        }
    }
}

/// The pauses between attempts: longer each time, up to 3 seconds, and of random length, so that hosts do not all retry
/// at the same time.
struct Pause {
    private var length = 0.1

    mutating func wait() async { try? await Task.sleep(for: next()) }

    /// Returns the length of the next pause.
    mutating func next() -> Duration {
        defer { length = min(3, length * 2) }
        return .seconds(length * .random(in: 0.5...1))
    }
}
