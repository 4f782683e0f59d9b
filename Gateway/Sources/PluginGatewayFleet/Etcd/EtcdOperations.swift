import Foundation
import PluginABI

/// A key in etcd.
public struct EtcdEntry: Sendable, Hashable {
    public let key: String
    public let value: [UInt8]
    /// The revision at which the key was made.
    public let created: Int
    /// The revision of the last change.
    public let modified: Int
    /// The lease with which the key expires; 0 for none.
    public let lease: Int
    /// ``key`` as etcd has it, possibly not UTF-8.
    let keyBytes: [UInt8]
}

/// A condition of a transaction.
public enum EtcdCondition: Sendable {
    /// The key does not exist.
    case absent(String)
    /// The key was last changed at this revision; 0 if it does not exist.
    case unchanged(String, since: Int)
    /// The key expires with this lease.
    case held(String, by: Int)
}

/// A step of a transaction.
public enum EtcdOperation: Sendable {
    /// Writes a key. With lease 0, it does not expire.
    case put(String, [UInt8], lease: Int = 0)
    case delete(String)
    /// Reads the keys that begin with a prefix, at most this many.
    case list(String, limit: Int)
    /// Reads keys without their values: those that begin with a prefix, from a key on, at most this many.
    case names(String, from: [UInt8], limit: Int)
    case get(String)
}

extension Etcd {
    /// Executes a transaction. All its reads see the state at the same moment.
    ///
    /// - Parameters:
    ///   - conditions: What must be true; otherwise nothing is done.
    ///   - operations: The operations to execute.
    /// - Returns: For each operation, the keys that it has read, and how many there are; `nil` if a condition is not
    ///   met.
    /// - Throws: An ``EtcdError``; with ``EtcdError/Code/unknown``, changes may have been made.
    public func transact(
        if conditions: [EtcdCondition] = [], _ operations: [EtcdOperation]
    ) async throws(EtcdError) -> [(entries: [EtcdEntry], count: Int)]? {
        let changes = operations.contains {
            if case .put = $0 { true } else if case .delete = $0 { true } else { false }
        }
        let answer = try await ask(
            "/v3/kv/txn",
            ["compare": .list(conditions.map(\.json)), "success": .list(operations.map(\.json))], changes: changes)
        guard answer["header"] != nil else {
            throw EtcdError(.invalidAnswer, "etcd answered a transaction with an unexpected result.")
        }
        guard answer["succeeded"]?.bool == true else { return nil }
        let responses = answer["responses"]?.list ?? []
        guard responses.count == operations.count else {
            throw EtcdError(.invalidAnswer, "etcd answered only part of a transaction.")
        }
        return responses.map { response in
            let range = response["response_range"]
            let entries = (range?["kvs"]?.list ?? []).compactMap(EtcdEntry.init)
            return (entries, Self.int(range?["count"]) ?? entries.count)
        }
    }

    /// Returns a key; `nil` if it does not exist.
    ///
    /// - Parameter key: The key.
    public func get(_ key: String) async throws(EtcdError) -> EtcdEntry? {
        try await transact([.get(key)])?.first?.entries.first
    }

    /// Writes a key.
    ///
    /// - Parameters:
    ///   - key: The key.
    ///   - value: The value.
    ///   - lease: The lease with which the key expires; 0 for none.
    public func put(_ key: String, _ value: [UInt8], lease: Int = 0) async throws(EtcdError) {
        _ = try await transact([.put(key, value, lease: lease)])
    }

    // MARK: Leases

    /// Makes a lease.
    ///
    /// - Parameter seconds: After how many seconds without ``keepAlive(_:)`` it expires, 1 or more.
    /// - Returns: Its number.
    public func grantLease(_ seconds: Int) async throws(EtcdError) -> Int {
        let answer = try await ask("/v3/lease/grant", ["TTL": .string("\(seconds)")], changes: false)
        guard let id = Self.int(answer["ID"]), id != 0 else {
            throw EtcdError(.invalidAnswer, "etcd granted a lease without a number.")
        }
        return id
    }

    /// Renews a lease.
    ///
    /// - Parameter lease: Its number.
    /// - Throws: ``EtcdError/Code/leaseNotFound`` if it has expired.
    public func keepAlive(_ lease: Int) async throws(EtcdError) {
        let answer = try await ask("/v3/lease/keepalive", ["ID": .string("\(lease)")], changes: false)
        guard let seconds = Self.int(answer["result"]?["TTL"]), seconds > 0 else {
            throw EtcdError(.leaseNotFound, "The lease has expired.")
        }
    }

    /// Ends a lease, and deletes its keys.
    ///
    /// - Parameter lease: Its number.
    public func revoke(_ lease: Int) async throws(EtcdError) {
        _ = try await ask("/v3/lease/revoke", ["ID": .string("\(lease)")], changes: false)
    }

    // MARK: JSON

    /// etcd writes 64-bit numbers as JSON strings, and omits zeros.
    static func int(_ value: Value?) -> Int? { value?.int ?? value?.string.flatMap { Int($0) } }

    static func encode(_ text: String) -> String { Data(text.utf8).base64EncodedString() }

    /// Returns the first key after all keys that begin with a prefix.
    static func end(of prefix: String) -> String {
        // Prefixes end with “/”.
        precondition(prefix.hasSuffix("/"))
        return prefix.dropLast() + "0"
    }
}

extension EtcdEntry {
    fileprivate init?(_ value: Value) {
        guard let key = value["key"]?.string.flatMap({ Data(base64Encoded: $0) }),
            let bytes = Data(base64Encoded: value["value"]?.string ?? "")
        else { return nil }
        self.key = String(decoding: key, as: UTF8.self)
        keyBytes = Array(key)
        self.value = Array(bytes)
        (created, modified, lease) = (
            Etcd.int(value["create_revision"]) ?? 0, Etcd.int(value["mod_revision"]) ?? 0, Etcd.int(value["lease"]) ?? 0
        )
    }
}

extension EtcdCondition {
    fileprivate var json: Value {
        switch self {
        case .absent(let key):
            ["key": .string(Etcd.encode(key)), "target": "CREATE", "result": "EQUAL", "create_revision": "0"]
        case .unchanged(let key, let revision):
            [
                "key": .string(Etcd.encode(key)), "target": "MOD", "result": "EQUAL",
                "mod_revision": .string("\(revision)"),
            ]
        case .held(let key, let lease):
            ["key": .string(Etcd.encode(key)), "target": "LEASE", "result": "EQUAL", "lease": .string("\(lease)")]
        }
    }
}

extension EtcdOperation {
    fileprivate var json: Value {
        switch self {
        case .put(let key, let value, let lease):
            [
                "request_put": [
                    "key": .string(Etcd.encode(key)), "value": .string(Data(value).base64EncodedString()),
                    "lease": .string("\(lease)"),
                ]
            ]
        case .delete(let key): ["request_delete_range": ["key": .string(Etcd.encode(key))]]
        case .get(let key): ["request_range": ["key": .string(Etcd.encode(key))]]
        case .list(let prefix, let limit):
            [
                "request_range": [
                    "key": .string(Etcd.encode(prefix)), "range_end": .string(Etcd.encode(Etcd.end(of: prefix))),
                    "limit": .string("\(limit)"),
                ]
            ]
        case .names(let prefix, let start, let limit):
            [
                "request_range": [
                    "key": .string(Data(start).base64EncodedString()),
                    "range_end": .string(Etcd.encode(Etcd.end(of: prefix))),
                    "limit": .string("\(limit)"), "keys_only": true,
                ]
            ]
        }
    }
}
