import PluginABI

/// The mounts that a call has passed, in the order from the first one: an entry `pluginhost=…` of `tracestate`, which
/// modules, tracers and proxies pass on with the trace.
///
/// Each mount adds 16 digits, which stand for the mount, the target and the action.
enum CallChain {
    static let key = "pluginhost"
    /// The number of mounts whose digits fit into an entry of `tracestate`.
    static let longest = 16
    private static let digits = 16

    /// Returns the trace for a call that passes a mount. If there is no trace, a new one begins.
    ///
    /// - Parameters:
    ///   - mount: The number of the mount.
    ///   - action: The target and the action, `B/greet`.
    ///   - limit: How many mounts a call may pass.
    /// - Throws: `circularCall` if it has passed the mount before with this action; `recursionLimit`.
    static func extend(
        _ trace: TraceContext?, through mount: UInt64, _ action: String, limit: Int
    ) throws(PluginError) -> TraceContext {
        let entries = (trace?.tracestate ?? "").split(separator: ",").map(trimmed)
        let passed = entries.compactMap(passed).first ?? ""
        let own = link(mount, action)
        var start = passed.startIndex
        var count = 0
        while start < passed.endIndex {
            let end = passed.index(start, offsetBy: digits)
            guard passed[start..<end] != own else {
                throw PluginError(
                    .circularCall,
                    "The call of “\(action)” has come back to this host, which has already sent it on: the hosts mount each "
                        + "other, or their modules call each other, in a circle. The call has passed "
                        + "\(passed.utf8.count / digits) mounts.")
            }
            (start, count) = (end, count + 1)
        }
        guard count < min(max(1, limit), longest) else {
            throw PluginError(
                .recursionLimit,
                "The call of “\(action)” has passed \(count) mounts of other hosts, which is the limit.")
        }
        let others = entries.filter { $0.prefix { $0 != "=" } != key }
        let state = (["\(key)=\(passed)\(own)"] + others.map(String.init)).joined(separator: ",")
        guard let trace else { return TraceContext(tracestate: state) }
        return TraceContext(
            traceID: trace.traceID, spanID: trace.spanID, isSampled: trace.isSampled, tracestate: state)
    }

    private static func trimmed(_ text: Substring) -> Substring {
        var text = text
        while text.first == " " || text.first == "\t" { text.removeFirst() }
        while text.last == " " || text.last == "\t" { text.removeLast() }
        return text
    }

    /// The digits of an entry; `nil` if it is another entry, or not valid.
    private static func passed(_ entry: Substring) -> Substring? {
        guard entry.hasPrefix(key + "=") else { return nil }
        let value = entry.dropFirst(key.utf8.count + 1)
        let isValid =
            value.utf8.count % digits == 0 && value.utf8.count <= digits * longest
            && value.utf8.allSatisfy { (48...57).contains($0) || (97...102).contains($0) }
        return isValid ? value : nil
    }

    private static func link(_ mount: UInt64, _ action: String) -> String {
        var hash: UInt64 = 0xCBF2_9CE4_8422_2325
        func add(_ byte: UInt8) { hash = (hash ^ UInt64(byte)) &* 0x100_0000_01B3 }
        for shift in stride(from: 0, to: 64, by: 8) { add(UInt8(truncatingIfNeeded: mount >> UInt64(shift))) }
        for byte in action.utf8 { add(byte) }
        let text = String(hash, radix: 16)
        return String(repeating: "0", count: digits - text.utf8.count) + text
    }
}
