import CPluginABI

/// A call and the calls that led to it. The first element is the call itself, and each further one is the call for
/// which the previous one is made, up to, but not including, the first that is over.
struct CallChain: Sequence, IteratorProtocol {
    /// A call that was not over when it was read.
    struct Link {
        let token: plugin_token
        /// The endpoint that runs; `nil` if the record is already free.
        let endpoint: Endpoint?
        let depth: UInt64
        let phase: CallRecord.Phase
    }

    private var token: plugin_token

    init(from token: plugin_token) { self.token = token }

    mutating func next() -> Link? {
        guard let record = CallRecord(token: token) else { return nil }
        let (endpoint, parent, depth) = (record.endpoint, record.parent, record.depth)
        let phase = record.phase(of: token)  // Read last: only this proves that the values above belong to this call.
        guard phase != .over else { return nil }
        defer { token = parent }
        return Link(token: token, endpoint: endpoint, depth: depth, phase: phase)
    }
}

extension CallRecord {
    /// Reads a value of a call; `nil` if the call is over and its record may serve another one.
    @inline(__always)
    static func read<Member>(_ token: plugin_token, _ member: (CallRecord) -> Member) -> Member? {
        guard let record = CallRecord(token: token) else { return nil }
        let value = member(record)
        return record.phase(of: token) == .over ? nil : value
    }

    /// Returns target and action of a running call; `nil` if it is over.
    static func name(of token: plugin_token) -> String? { read(token, \.endpoint)??.name }

    /// Returns the object that a call works on; 0 for a call of a target's action, and for a call that is over.
    static func object(of token: plugin_token) -> plugin_object { read(token, \.object) ?? 0 }

    /// Adds the tokens of this call and of the running calls that led to it, up to and including the first one whose
    /// caller no longer waits for it.
    func addChain(to chain: inout Set<plugin_token>) {
        chain.insert(token)
        for call in CallChain(from: parent) {
            guard chain.insert(call.token).inserted, call.phase != .abandoned else { return }
        }
    }
}
