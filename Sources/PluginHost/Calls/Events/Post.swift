import CPluginABI
import CPluginHost
import Glibc
import PluginABI

/// An event that is being delivered: a call of its own, whose nested calls are those of the subscribers.
struct Post {
    let event: plugin_string
    let entries: UnsafeBufferPointer<plugin_entry>
    let caller: Unmanaged<Generation>?
    /// The call that the subscribers are called for, and the depth of their calls.
    let token: plugin_token
    let depth: UInt32
    /// When it began, as the record has it: that of the first subscriber need not ask the clock again.
    let since: Int64
    /// The number of the table that lists the subscribers; 0 where none does.
    let table: UInt64

    /// A call of a subscriber.
    func call(_ mode: Calls.Mode, _ receiver: Calls.Receiver) -> Calls.Call {
        Calls.Call(parent: token, timeout: 0, isRemote: false, mode: mode, receiver: receiver, caller: caller)
    }
}

extension plugin_request {
    /// Whether the event that it posts or emits and its parameters all have names.
    @inline(__always)
    var isNamedEvent: Bool { target.count > 0 && entries.allSatisfy { $0.key.count > 0 } }

    /// The name of the event that it posts or emits, and its parameters, which all have names.
    ///
    /// - Throws: `invalidValue` where something has none.
    func namedEvent() throws(PluginError) -> (name: plugin_string, entries: UnsafeBufferPointer<plugin_entry>) {
        if isNamedEvent { return (target, entries) }
        guard target.count > 0 else { throw PluginError(.invalidValue, "An event needs a name.") }
        throw PluginError(
            .invalidValue,
            "The event “\(target.text.shortened)” has a parameter without a name; who gets it goes by names.")
    }
}

extension plugin_string {
    /// Whether it is a name for events of the host.
    var isOfHost: Bool { begins(with: "host.") || begins(with: "module.") || begins(with: "configuration.") }

    private func begins(with prefix: StaticString) -> Bool {
        count >= prefix.utf8CodeUnitCount && memcmp(bytes, prefix.utf8Start, prefix.utf8CodeUnitCount) == 0
    }
}

extension Calls {
    /// The depth of a post within the calls that led to it.
    ///
    /// - Throws: `recursionLimit`, also when handlers of the event post it again and again: with several of them the
    ///   number of calls would double at each step, long before the calls are nested too deeply.
    @inline(__always)
    func depth(of event: @autoclosure () -> String, below parent: plugin_token) throws(PluginError) -> UInt32 {
        parent == 0 ? 1 : try nestedDepth(of: event(), below: parent)
    }

    private func nestedDepth(of event: String, below parent: plugin_token) throws(PluginError) -> UInt32 {
        var depth: UInt32 = 1
        var repetitions = 0
        let name = "!" + event
        for call in CallChain(from: parent) {
            if call.token == parent { depth = call.depth + 1 }
            if let endpoint = call.endpoint, endpoint.name == name, !endpoint.isStandIn { repetitions += 1 }
        }
        if depth > PLUGIN_DEPTH_MAX { throw .recursionLimit }
        guard repetitions < Self.repetitionsMax else {
            throw PluginError(
                .recursionLimit,
                "The event “\(event.shortened)” is posted from inside its own handler without end "
                    + "(\(repetitions) times by now).")
        }
        return depth
    }

    /// How many handlers of one event may run within each other.
    private static var repetitionsMax: Int { 8 }
}
