import PluginABI

/// A rollout of a module, under `rollout`: the current one, or the last.
public struct RolloutRecord: Sendable, Hashable {
    /// The state of a rollout.
    public enum State: String, Sendable {
        /// Hosts replace the module, one after the other.
        case running
        /// No further host begins.
        case paused
        /// The hosts that have the new version roll back.
        case rollingBack
        /// All hosts serve the new version, and it is desired.
        case done
        /// All hosts serve the releases that they served before.
        case rolledBack
        /// Some hosts could not roll back.
        case failed
    }

    /// What a host has done.
    public struct Step: Sendable, Hashable {
        /// The state of a host's step.
        public enum State: String, Sendable {
            case replacing, observing, done, rolledBack, failed
        }

        public var state: State
        /// The release that the host served before; `nil` if it did not have the module.
        public var before: ModuleRelease?
        /// What was observed of the new version.
        public var observed: Observation?
        public var reason: String?
    }

    /// The limits that a new version must not exceed.
    public struct Limits: Sendable, Hashable {
        /// How many calls a host must have observed before it judges.
        public var minimumCalls = 20
        /// The largest share of calls that may fail, 0 to 1.
        public var maximumErrorRate: Double? = 0.05
        /// The longest duration that 99 of 100 calls may take, in milliseconds.
        public var maximumLatency: Double?
        /// How many times as long 99 of 100 calls may take as with the previous version, on the same host.
        public var maximumLatencyRatio: Double?

        public init() {}
    }

    /// Distinguishes two rollouts, even of the same version.
    public var id: String
    public var module: String
    public var release: ModuleRelease
    public var state: State
    /// Why the rollout is being rolled back, or has failed.
    public var reason: String?
    /// How long a host is out of the balancer before it replaces the module, in seconds.
    public var drain: Double
    /// How long a host observes the new version, in seconds.
    public var soak: Double
    public var limits: Limits
    /// The steps of the hosts, by their names.
    public var steps: [String: Step]
    /// The hosts that were known at the beginning. Each must take its step, unless it is in ``dropped``.
    public var hosts: Set<String> = []
    /// The hosts that the rollout does not wait for while they are missing.
    public var dropped: Set<String> = []

    /// The most hosts that a rollout lists.
    static let stepLimit = 1000

    /// Whether hosts may still have something to do. While this is true, another rollout is refused.
    public var isActive: Bool { state == .running || state == .paused || state == .rollingBack }

    var json: Value {
        var limits: [String: Value] = ["minimumCalls": .int(self.limits.minimumCalls)]
        limits["maximumErrorRate"] = self.limits.maximumErrorRate.map(Value.double)
        limits["maximumLatency"] = self.limits.maximumLatency.map(Value.double)
        limits["maximumLatencyRatio"] = self.limits.maximumLatencyRatio.map(Value.double)
        var entries: [String: Value] = [
            "id": .string(id), "module": .string(module), "release": release.json, "state": .string(state.rawValue),
            "drain": .double(drain), "soak": .double(soak), "limits": .map(limits),
            "steps": .map(steps.mapValues(\.json)), "hosts": .list(hosts.sorted().map(Value.string)),
            "dropped": .list(dropped.sorted().map(Value.string)),
        ]
        entries["reason"] = reason.map { .string($0.clean) }
        return .map(entries)
    }

    init(_ value: Value) throws(RecordError) {
        guard let id = value["id"]?.string, HostRecord.isName(id), let module = value["module"]?.string,
            ModuleRelease.isModule(module), let release = value["release"]
        else { throw RecordError("“id”, “module” or “release” is missing or invalid") }
        guard let state = value["state"]?.string.flatMap(State.init) else { throw RecordError("“state” is unknown") }
        guard let drain = value["drain"]?.fleetNumber, let soak = value["soak"]?.fleetNumber, drain <= 86_400,
            soak <= 86_400
        else { throw RecordError("“drain” or “soak” is not a number of seconds") }
        var limits = Limits()
        limits.minimumCalls = value["limits"]?["minimumCalls"]?.int.map { max(1, $0) } ?? limits.minimumCalls
        limits.maximumErrorRate = value["limits"]?["maximumErrorRate"]?.fleetNumber
        limits.maximumLatency = value["limits"]?["maximumLatency"]?.fleetNumber
        limits.maximumLatencyRatio = value["limits"]?["maximumLatencyRatio"]?.fleetNumber
        guard let list = value["steps"]?.map, list.count <= Self.stepLimit else {
            throw RecordError("“steps” does not list at most \(Self.stepLimit) hosts")
        }
        var steps: [String: Step] = [:]
        for (name, step) in list {
            guard HostRecord.isName(name) else { throw RecordError("“steps” has a host without a name") }
            steps[name] = try Step(step)
        }
        (self.id, self.module, self.release, self.state) = (id, module, try ModuleRelease(release), state)
        (self.drain, self.soak, self.limits, self.steps) = (drain, soak, limits, steps)
        (hosts, dropped) = (try Self.names(value, "hosts"), try Self.names(value, "dropped"))
        reason = value["reason"]?.string?.clean
    }

    private static func names(_ value: Value, _ key: String) throws(RecordError) -> Set<String> {
        guard let list = value[key], list != nil else { return [] }
        let names = (list.list ?? []).compactMap(\.string)
        guard names.count == list.list?.count, names.count <= stepLimit, names.allSatisfy(HostRecord.isName) else {
            throw RecordError("“\(key)” does not list the names of at most \(stepLimit) hosts")
        }
        return Set(names)
    }

    /// - Parameters:
    ///   - id: A name that no other rollout has.
    ///   - module: The module.
    ///   - release: The release to serve.
    init(id: String, module: String, release: ModuleRelease, drain: Double, soak: Double, limits: Limits) {
        (self.id, self.module, self.release, self.state) = (id, module, release, .running)
        (self.drain, self.soak, self.limits, self.steps) = (drain, soak, limits, [:])
    }
}

extension RolloutRecord {
    /// How long a call may run during the observation before it counts as failed: the maximum latency; if there is
    /// none, half of the observation, but 1 to 5 seconds, or 10 times the latency of the previous version if that is
    /// longer.
    func longestCall(_ before: Observation?) -> Duration {
        if let most = limits.maximumLatency { return .milliseconds(most) }
        return .milliseconds(max(min(5000, max(1000, soak * 500)), (before?.latency ?? 0) * 10))
    }

    /// The hosts that still have something to do, including those that are missing. Hosts that join later are not among
    /// them.
    var awaitedHosts: Set<String> {
        let names = state == .rollingBack ? Set(steps.keys) : hosts.union(steps.keys)
        return names.subtracting(dropped).filter { name in
            guard let step = steps[name]?.state else { return true }
            return state == .rollingBack ? step != .rolledBack && step != .failed : step != .done
        }
    }
}

extension RolloutRecord.Step {
    fileprivate var json: Value {
        var entries: [String: Value] = ["state": .string(state.rawValue)]
        entries["before"] = before?.json
        entries["observed"] = observed?.json
        entries["reason"] = reason.map { .string($0.clean) }
        return .map(entries)
    }

    fileprivate init(_ value: Value) throws(RecordError) {
        guard let state = value["state"]?.string.flatMap(State.init) else {
            throw RecordError("“steps” has an unknown “state”")
        }
        var before: ModuleRelease?
        if let value = value["before"], value != nil { before = try ModuleRelease(value) }
        self.init(
            state: state, before: before, observed: value["observed"].flatMap(Observation.init),
            reason: value["reason"]?.string?.clean)
    }
}

/// What a host has observed of a module's calls over HTTP.
public struct Observation: Sendable, Hashable {
    public var calls: Int
    /// The number of calls that failed because of the module.
    public var errors: Int
    /// The duration that 99 of 100 calls did not exceed, in milliseconds; `nil` if there were none.
    public var latency: Double?

    var json: Value {
        var entries: [String: Value] = ["calls": .int(calls), "errors": .int(errors)]
        entries["latency"] = latency.map(Value.double)
        return .map(entries)
    }

    init?(_ value: Value) {
        guard let calls = value["calls"]?.int, let errors = value["errors"]?.int else { return nil }
        self.init(calls: calls, errors: errors, latency: value["latency"]?.fleetNumber)
    }

    init(calls: Int, errors: Int, latency: Double?) {
        (self.calls, self.errors, self.latency) = (calls, errors, latency)
    }

    /// Returns which limit is exceeded; `nil` if none is, or if there were too few calls.
    ///
    /// - Parameters:
    ///   - limits: The limits.
    ///   - before: What was observed of the previous version; `nil` if that is not known.
    func problem(_ limits: RolloutRecord.Limits, before: Observation?) -> String? {
        guard calls >= limits.minimumCalls else { return nil }
        let rate = Double(errors) / Double(calls)
        if let most = limits.maximumErrorRate, rate > most {
            return "\(errors) of \(calls) calls failed; the limit is \(most * 100) %"
        }
        guard let latency else { return nil }
        let text = "99 of 100 calls took up to \(Self.shown(latency)) ms"
        if let most = limits.maximumLatency, latency > most { return "\(text); the limit is \(Self.shown(most)) ms" }
        if let ratio = limits.maximumLatencyRatio, let old = before?.latency, before!.calls >= limits.minimumCalls,
            latency > old * ratio
        {
            return "\(text), and \(Self.shown(old)) ms before; the limit is \(ratio) times as long"
        }
        return nil
    }

    /// Returns the reason why too few calls were over at the end of the observation to judge the version: most of those
    /// that had begun were not. `nil` if enough were over, or if calls of the previous version took longer than the
    /// observation.
    ///
    /// - Parameters:
    ///   - begun: How many calls have begun.
    ///   - ended: How many of them are over.
    ///   - rollout: The rollout.
    ///   - before: What was observed of the previous version.
    func silence(of begun: Int, _ ended: Int, _ rollout: RolloutRecord, before: Observation?) -> String? {
        let least = rollout.limits.minimumCalls
        if let latency = before?.latency, latency > rollout.soak * 1000 { return nil }
        // Most calls failed without an answer, but there are too few calls to be judged.
        let isSilent = calls > ended && calls < least && ended * 2 < calls
        guard isSilent || (begun >= least && ended < least && ended * 2 < begun) else { return nil }
        return "only \(ended) of \(begun) calls that have begun are over"
    }

    private static func shown(_ milliseconds: Double) -> String { "\((milliseconds * 10).rounded() / 10)" }
}
