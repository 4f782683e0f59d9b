import Glibc
import PluginABI

/// An event that is being delivered. It is a call of its own, and the subscribers' calls are nested in it.
struct Post {
    let event: plugin_string
    let entries: UnsafeBufferPointer<plugin_entry>
    let caller: Unmanaged<Generation>?
    /// The call in which the subscribers' calls are nested, and the depth of those calls.
    let token: plugin_token
    let depth: UInt64
    /// The time when the post began, from its record; the first subscriber's call need not read the clock again.
    let since: Int64
    /// The number of the table that lists the subscribers; 0 if there is none.
    let table: UInt64

    /// Creates the call of a subscriber.
    func call(_ mode: Calls.Mode, _ receiver: Calls.Receiver) -> Calls.Call {
        Calls.Call(parent: token, timeout: 0, isRemote: false, mode: mode, receiver: receiver, caller: caller)
    }
}

extension plugin_request {
    /// Whether the event that the request posts or emits, and all its parameters, have names.
    @inline(__always)
    var isNamedEvent: Bool { target.count > 0 && entries.allSatisfy { $0.key.count > 0 } }

    /// Returns the name of the event that the request posts or emits, and its parameters, which all have names.
    ///
    /// - Throws: `invalidValue` if the event or a parameter has no name.
    func namedEvent() throws(PluginError) -> (name: plugin_string, entries: UnsafeBufferPointer<plugin_entry>) {
        if isNamedEvent { return (target, entries) }
        guard target.count > 0 else { throw PluginError(.invalidValue, "An event needs a name.") }
        throw PluginError(
            .invalidValue,
            "The event “\(target.text.shortened)” has a parameter without a name: the parameters of events are named.")
    }
}

extension plugin_string {
    /// Whether the string is a name that is reserved for events of the host.
    var isOfHost: Bool { begins(with: "host.") || begins(with: "module.") || begins(with: "configuration.") }

    private func begins(with prefix: StaticString) -> Bool {
        count >= prefix.utf8CodeUnitCount && memcmp(bytes, prefix.utf8Start, prefix.utf8CodeUnitCount) == 0
    }
}

extension Calls {
    /// Returns the depth of a post within the calls that led to it.
    ///
    /// - Throws: `recursionLimit` if calls are nested too deeply, or if handlers of the event keep posting it: with
    ///   several handlers, the number of calls multiplies at each level, and becomes too large long before the calls
    ///   are nested too deeply.
    @inline(__always)
    func depth(of event: @autoclosure () -> String, below parent: plugin_token) throws(PluginError) -> UInt64 {
        parent == 0 ? 1 : try nestedDepth(of: event(), below: parent)
    }

    private func nestedDepth(of event: String, below parent: plugin_token) throws(PluginError) -> UInt64 {
        var depth: UInt64 = 1
        var repetitions = 0
        let name = "!" + event
        for call in CallChain(from: parent) {
            if call.token == parent { depth = call.depth + 1 }
            if let endpoint = call.endpoint, endpoint.name == name, !endpoint.isStandIn { repetitions += 1 }
        }
        if CallContexts.level(depth) > PLUGIN_DEPTH_MAX { throw .recursionLimit }
        guard repetitions < Self.repetitionsMax else {
            throw PluginError(
                .recursionLimit,
                "The event “\(event.shortened)” is posted within \(repetitions) nested handlers of the same event: its "
                    + "handlers seem to post it without end.")
        }
        return depth
    }

    /// The maximum number of nested handlers of one event.
    private static var repetitionsMax: Int { 8 }
}
