public import PluginABI
import PluginHost

/// The state of the fleet in etcd: at one moment, unless it is too large for one answer.
public struct FleetSnapshot: Sendable {
    /// The hosts whose leases have not expired, by name.
    public var hosts: [String: HostRecord] = [:]
    /// The desired releases, by the name of the module.
    public var desired: [String: ModuleRelease] = [:]
    /// The current or last rollout.
    public var rollout: RolloutRecord?
    /// The name of the host that is taking its step.
    public var lockHolder: String?
    /// The problems of keys that cannot be read, and are ignored; one text for each key.
    public var problems: [String] = []

    /// The leases of the hosts' keys, by name, including keys that cannot be read.
    var hostLeases: [String: Int] = [:]
    /// The lease of the host that is taking its step; 0 for none.
    var lockLease = 0
    /// The revision of ``rollout``; 0 if there is none. Also set if it cannot be read.
    var rolloutRevision = 0
    /// Whether there is a rollout that cannot be read.
    var hasUnreadableRollout = false
}

/// The keys of a fleet in etcd.
struct FleetKeys: Sendable {
    /// The beginning of all keys, without a slash at its end.
    let prefix: String

    var all: String { "\(prefix)/" }
    var hosts: String { "\(prefix)/hosts/" }
    var desired: String { "\(prefix)/desired/" }
    var rollout: String { "\(prefix)/rollout" }
    var lock: String { "\(prefix)/lock" }

    func host(_ name: String) -> String { hosts + name }
    func desired(_ module: String) -> String { desired + module }

    /// How many hosts and how many desired modules are read.
    static let limit = 1000

    /// The longest key that is read, in bytes, beyond the beginning of the keys.
    private static let nameLimit = 1000

    /// How many bytes of the names of keys are read.
    private static let namesLimit = 32 << 20

    /// Reads the keys in one transaction. If the answer would be too large, reads them one by one, and then those of
    /// the rollout and the lock.
    private func entries(_ etcd: Etcd) async throws(EtcdError) -> [(entries: [EtcdEntry], count: Int)] {
        do throws(EtcdError) {
            return try await etcd.transact([
                .list(hosts, limit: Self.limit), .list(desired, limit: Self.limit), .get(rollout), .get(lock),
            ]) ?? []
        } catch {
            guard error.code == .invalidAnswer else { throw error }
        }
        var answers: [(entries: [EtcdEntry], count: Int)] = []
        for prefix in [hosts, desired] {
            let (names, unread) = try await names(prefix, etcd)
            var read: [EtcdEntry] = []
            for name in names {
                // A key whose name no host writes is only named.
                if name.keyBytes.count > prefix.utf8.count + Self.nameLimit
                    || !name.key.utf8.elementsEqual(name.keyBytes)
                {
                    read.append(name)
                } else if let entry = try await etcd.get(name.key) {
                    read.append(entry)
                }
            }
            answers.append((read, read.count + unread))
        }
        return answers + (try await etcd.transact([.get(rollout), .get(lock)]) ?? [])
    }

    /// Reads the names of the keys that begin with a prefix, fewer at a time if an answer would be too large.
    ///
    /// - Returns: The keys without their values, and how many others there are.
    private func names(
        _ prefix: String, _ etcd: Etcd
    ) async throws(EtcdError) -> (read: [EtcdEntry], unread: Int) {
        var (read, start, size, bytes) = ([EtcdEntry](), Array(prefix.utf8), Self.limit, 0)
        while true {
            do throws(EtcdError) {
                let limit = min(size, Self.limit - read.count)
                let answer = try await etcd.transact([.names(prefix, from: start, limit: limit)])?.first
                guard let (entries, count) = answer, let last = entries.last else { return (read, 0) }
                read += entries
                bytes += entries.reduce(0) { $0 + $1.keyBytes.count }
                let unread = max(0, count - entries.count)
                guard unread > 0, read.count < Self.limit, bytes < Self.namesLimit else { return (read, unread) }
                start = last.keyBytes + [0]
            } catch {
                guard error.code == .invalidAnswer, size > 1 else { throw error }
                size = max(1, size / 32)
            }
        }
    }

    /// Reads the state of the fleet.
    func snapshot(_ etcd: Etcd) async throws(EtcdError) -> FleetSnapshot {
        let answers = try await entries(etcd)
        guard answers.count == 4 else {
            throw EtcdError(.invalidAnswer, "etcd refused a transaction without conditions.")
        }
        var snapshot = FleetSnapshot()
        func read<Record>(_ entry: EtcdEntry, _ make: (Value) throws(RecordError) -> Record) -> Record? {
            do throws(RecordError) {
                guard entry.keyBytes.count <= desired.utf8.count + Self.nameLimit else {
                    throw RecordError("its name is longer than \(Self.nameLimit) bytes")
                }
                guard entry.value.count <= 1 << 20, let value = Self.value(entry.value) else {
                    throw RecordError("it is not JSON of at most 1 MiB")
                }
                return try make(value)
            } catch {
                snapshot.problems.append("\(entry.key.clean) is ignored: \(error).")
                return nil
            }
        }
        for entry in answers[0].entries {
            let name = String(entry.key.dropFirst(hosts.count))
            snapshot.hostLeases[name] = entry.lease
            snapshot.hosts[name] = read(entry) { value throws(RecordError) in try HostRecord(name, value) }
        }
        for entry in answers[1].entries {
            let name = String(entry.key.dropFirst(desired.count))
            snapshot.desired[name] = read(entry) { value throws(RecordError) in
                guard ModuleRelease.isModule(name) else {
                    throw RecordError("the key does not end with the name of a module")
                }
                return try ModuleRelease(value)
            }
        }
        if let entry = answers[2].entries.first {
            snapshot.rolloutRevision = entry.modified
            snapshot.rollout = read(entry) { value throws(RecordError) in try RolloutRecord(value) }
            snapshot.hasUnreadableRollout = snapshot.rollout == nil
        }
        if let entry = answers[3].entries.first {
            snapshot.lockHolder = String(decoding: entry.value.prefix(64), as: UTF8.self).clean
            snapshot.lockLease = entry.lease
            if entry.lease == 0 {
                snapshot.problems.append(
                    "\(entry.key.clean) has no lease, so no host can begin its step. Delete it with etcdctl.")
            }
        }
        for (answer, kind) in [(answers[0], "hosts"), (answers[1], "desired modules")]
        where answer.count > answer.entries.count {
            snapshot.problems.append(
                "There are \(answer.count) keys of \(kind); only \(answer.entries.count) are read.")
        }
        return snapshot
    }

    static func value(_ bytes: [UInt8]) -> Value? {
        bytes.withUnsafeBytes { try? Value(strictJSON: $0) }
    }
}

extension FleetSnapshot {
    /// The names of the hosts that the active rollout waits for although they are missing. They return, or are dropped
    /// by ``FleetControl/resume(without:)``.
    public var missingHosts: [String] {
        guard let rollout, rollout.isActive else { return [] }
        return rollout.awaitedHosts.filter { hosts[$0] == nil }.sorted()
    }

    /// The whole snapshot, as `fleet status --json` prints it.
    public var json: Value {
        var entries: [String: Value] = [
            "hosts": .map(hosts.mapValues(\.json)), "desired": .map(desired.mapValues(\.json)),
            "problems": .list(problems.map(Value.string)),
        ]
        entries["rollout"] = rollout?.json
        entries["lock"] = lockHolder.map(Value.string)
        if !missingHosts.isEmpty { entries["missing"] = .list(missingHosts.map(Value.string)) }
        return .map(entries)
    }
}

extension FleetConfiguration {
    /// Whether a text can be the beginning of the keys in etcd.
    ///
    /// - Parameter text: The text.
    public static func isPrefix(_ text: String) -> Bool {
        let parts = text.split(separator: "/", omittingEmptySubsequences: false)
        return text.utf8.count <= 256
            && parts.enumerated().allSatisfy { number, part in
                HostRecord.isName(String(part)) || (number == 0 && part.isEmpty && parts.count > 1)
            }
    }
}
