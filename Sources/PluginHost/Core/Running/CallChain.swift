import CPluginABI

/// A call and those that led to it: the first one is the call itself, each next one is what the one before is made for, up
/// to the first that is over.
struct CallChain: Sequence, IteratorProtocol {
    /// A call that was not over.
    struct Link {
        let token: plugin_token
        /// What runs; nil where the record is free already.
        let endpoint: Endpoint?
        let depth: UInt32
        let phase: CallRecord.Phase
    }

    private var token: plugin_token

    init(from token: plugin_token) { self.token = token }

    mutating func next() -> Link? {
        guard let record = CallRecord(token: token) else { return nil }
        let (endpoint, parent, depth) = (record.endpoint, record.parent, record.depth)
        let phase = record.phase(of: token)  // Only then is what was read before of this call.
        guard phase != .over else { return nil }
        defer { token = parent }
        return Link(token: token, endpoint: endpoint, depth: depth, phase: phase)
    }
}

extension CallRecord {
    /// Reads something of a call; nil when it is over, and its record may serve another one.
    @inline(__always)
    static func read<Member>(_ token: plugin_token, _ member: (CallRecord) -> Member) -> Member? {
        guard let record = CallRecord(token: token) else { return nil }
        let value = member(record)
        return record.phase(of: token) == .over ? nil : value
    }

    /// Target and action of a call that runs; nil when it is over.
    static func name(of token: plugin_token) -> String? { read(token, \.endpoint)??.name }

    /// The object that a call works on; 0 for a call of a target's action, and for one that is over.
    static func object(of token: plugin_token) -> plugin_object { read(token, \.object) ?? 0 }

    /// Adds the tokens of the calls that led here and still run, this one included, as far as each is awaited by the
    /// next.
    func addChain(to chain: inout Set<plugin_token>) {
        chain.insert(token)
        for call in CallChain(from: parent) {
            guard chain.insert(call.token).inserted, call.phase != .abandoned else { return }
        }
    }
}
