import CPluginABI
import PluginABI
import Synchronization

// The call path with interceptors. An intercepted call is a call of its own: that of an endpoint that stands in for the
// action and runs the interceptors. The action is called from within it, so deadlines, cancellation, the chain of calls
// and the depth work as for any other call.

extension Calls {
    /// Runs an endpoint through the interceptors that see it. The call already occupies its record.
    func invoke(
        _ endpoint: Endpoint, _ entries: UnsafeBufferPointer<plugin_entry>, _ call: Call, _ thread: ThreadContext,
        _ record: CallRecord, instance: UnsafeMutableRawPointer? = nil, through interception: Interception?
    ) throws(PluginError) -> plugin_token {
        let route = call.route?.takeUnretainedValue()
        guard let interceptors = interception?.matching(endpoint, route), !interceptors.isEmpty else {
            return try invoke(endpoint, entries, call, thread, record, instance: instance)
        }
        try check(endpoint, call, record)
        let table = registry.current(thread)
        let asynchronous = interceptors.first { $0.body.isAsync(in: table) }
        if call.mode == .synchronous, let asynchronous {
            throw PluginError(
                .asynchronousAction,
                "Calls of \(endpoint.title) pass through an asynchronous interceptor, \(asynchronous.title): use call "
                    + "(or performAndWait), not perform.")
        }
        let isAsync =
            endpoint.isAsync || asynchronous != nil
            || (call.mode == .any && endpoint.gate != nil)
        let object = record.object
        let invocation = InterceptedInvocation(
            calls: self, endpoint: endpoint, interceptors: interceptors, instance: instance, object: object,
            isFresh: call.isFresh,
            call: InterceptedCall(
                target: endpoint.words.target, action: endpoint.words.action, parameters: try endpoint.named(entries),
                origin: call.isRemote ? .remote : .local, route: route?.pattern.text,
                context: HostContext(host: program.hostTable)))
        let stand = endpoint.standIn(isAsync: isAsync)
        record.occupy(
            .passUnretained(stand), parent: call.parent, depth: record.depth, caller: call.caller)
        record.object = object
        let retained = Unmanaged.passRetained(invocation)
        do throws(PluginError) {
            let none = UnsafeBufferPointer<plugin_entry>(start: nil, count: 0)
            return try invoke(stand, none, call, thread, record, instance: retained.toOpaque())
        } catch {
            retained.release()  // If an error was thrown, the invocation did not run.
            throw error
        }
    }

    /// Calls an endpoint from within an intercepted call.
    func callIntercepted(
        _ endpoint: Endpoint, _ parameters: Parameters, _ call: Call, _ instance: UnsafeMutableRawPointer?,
        _ object: plugin_object
    ) -> plugin_token {
        inNextRecord(call.receiver) { (thread, record) throws(PluginError) in
            try parameters.lend { (entries) throws(PluginError) in
                occupy(record, .passUnretained(endpoint), call)
                if object != 0, ObjectTable.retain(object) { record.object = object }
                return try invoke(endpoint, entries, call, thread, record, instance: instance)
            }
        } ?? 0
    }
}

extension Endpoint {
    /// The names that interceptors receive: target and action, or type and action; for a subscription, only the event.
    fileprivate var words: (target: String, action: String) {
        if let event { return ("", event) }
        let words = name.split(maxSplits: 1) { $0 == "/" || $0 == "#" }
        return (String(words[0]), String(words[1]))
    }

    /// The event that the endpoint handles; `nil` if it is not a subscription.
    var event: String? { name.hasPrefix("!") ? String(name.dropFirst()) : nil }

    /// Returns the parameters by name, including those of a rest. If a name occurs more than once, the first entry is
    /// used.
    fileprivate func named(_ entries: UnsafeBufferPointer<plugin_entry>) throws(PluginError) -> [String: Value] {
        var named: [String: Value] = [:]
        func add(_ name: String, _ value: plugin_value) {
            if named[name] == nil { named[name] = Value(copying: value, host: generation.calls.program.hostTable) }
        }
        var position = 0
        for entry in entries {
            if entry.key.count != 0 {
                add(entry.key.text, entry.value)
            } else if position < parameters.count {
                let name = parameters[position].name
                if named[name] != nil { throw .givenTwice(name, self) }
                add(name, entry.value)
                position += 1
            } else {
                guard hasRest, position == parameters.count else { throw .tooManyArguments(entries.count, self) }
                for entry in try entry.value.entriesOfRest(of: self).reversed() {
                    guard entry.key.count > 0 else { throw .unknownParameter("", self) }
                    add(entry.key.text, entry.value)
                }
                position += 1
            }
        }
        return named
    }

    /// Returns the endpoint that runs the interceptors in place of the action. Never freed, like every endpoint.
    fileprivate func standIn(isAsync: Bool) -> Endpoint {
        standIns.withLock { standIns in
            standIns.form(isAsync: isAsync) {
                Endpoint(
                    name: nameBytes, isAsync: isAsync, isRemote: isRemote, isVariadic: true, isStandIn: true,
                    generation: generation
                ) { _, call, _, _ in
                    let call = call!.pointee
                    Unmanaged<InterceptedInvocation>.fromOpaque(call.instance).takeRetainedValue().run(call)
                }
            }
        }
    }
}
