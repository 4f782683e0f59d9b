import CPluginABI
import CPluginHost
import PluginABI

// The delivery of an event to one subscriber, whichever path it is posted by.

extension Calls {
    /// Calls a subscriber, or the one that has replaced it since the subscribers were listed. Returns the endpoint that
    /// was called; `nil` if it no longer exists.
    @inline(__always)
    func reach(
        _ subscriber: Unmanaged<Endpoint>, _ post: Post, _ since: Int64, _ receiver: Receiver, _ thread: ThreadContext
    ) -> Unmanaged<Endpoint>? {
        if handle(post, by: subscriber, since, .synchronous, receiver, thread) { return subscriber }
        return reachSuccessor(of: subscriber.takeUnretainedValue(), post, receiver, thread)
    }

    @inline(never)
    private func reachSuccessor(
        of subscriber: Endpoint, _ post: Post, _ receiver: Receiver, _ thread: ThreadContext
    ) -> Unmanaged<Endpoint>? {
        guard let next = successor(of: subscriber, for: post.event.text) else { return nil }
        return reach(.passUnretained(next), post, plugin_host_coarse_now(), receiver, thread)
    }

    /// Returns the subscriber in another generation of the module.
    func successor(of subscriber: Endpoint, for event: String) -> Endpoint? {
        registry.table.successor(of: subscriber.generation)?.subscriptions[event]
    }

    /// Calls one subscriber, through the interceptors that see it. Returns false, without calling the receiver, if the
    /// subscriber no longer exists.
    @inline(__always)
    func handle(
        _ post: Post, by endpoint: Unmanaged<Endpoint>, _ since: Int64, _ mode: Mode, _ receiver: Receiver,
        _ thread: ThreadContext?, through interception: Interception? = nil
    ) -> Bool {
        inNextRecord(receiver, thread) { (thread, record) throws(PluginError) in
            guard occupy(record, endpoint, for: post, since, thread) else { return nil }
            if interception == nil, callFast(endpoint, post.entries, areTrusted: true, receiver, thread, record) {
                return 0
            }
            return try invoke(
                endpoint.takeUnretainedValue(), post, mode, receiver, thread, record, through: interception)
        } != nil
    }

    /// Enters a subscriber's call in a record. Returns false if the subscriber has been removed since it was listed,
    /// which is impossible while the table is the same.
    @inline(__always)
    private func occupy(
        _ record: CallRecord, _ endpoint: Unmanaged<Endpoint>, for post: Post, _ since: Int64, _ thread: ThreadContext
    ) -> Bool {
        registry.read(thread) { table in
            guard table.number == post.table || table.serves(endpoint) else { return false }
            record.occupy(endpoint, parent: post.token, depth: post.depth, caller: post.caller, since: since)
            return true
        }
    }

    /// Calls a subscriber whose record is occupied, with those parameters that it accepts.
    @inline(never)
    private func invoke(
        _ endpoint: Endpoint, _ post: Post, _ mode: Mode, _ receiver: Receiver, _ thread: ThreadContext,
        _ record: CallRecord,
        through interception: Interception?
    ) throws(PluginError) -> plugin_token {
        let accepted = post.entries.filter { endpoint.accepts($0.key) }
        return try Result { () throws(PluginError) in
            try accepted.withUnsafeBufferPointer { (accepted) throws(PluginError) in
                try invoke(endpoint, accepted, post.call(mode, receiver), thread, record, through: interception)
            }
        }.get()
    }

    /// Calls a synchronous handler of the program. The caller of this function must retain the handler.
    ///
    /// - Parameters:
    ///   - instance: The instance of the handler.
    ///   - end: Called within the call, at its end, with the error that the handler has thrown, if any, or for which it
    ///     was not called.
    func run(
        _ handler: plugin_object, _ instance: UnsafeMutableRawPointer?, _ endpoint: Endpoint,
        _ parameters: [String: Value], _ post: Post, _ thread: ThreadContext?, _ end: (PluginError?) -> Void
    ) {
        guard let thread, let record = thread.next, CallContexts.level(post.depth) <= PLUGIN_DEPTH_MAX else {
            return end(.recursionLimit)
        }
        let box = Unmanaged<EventHandlerBox>.fromOpaque(instance!)
        record.occupy(.passUnretained(endpoint), parent: post.token, depth: post.depth, caller: post.caller)
        record.object = handler
        inRecord(endpoint, .none, thread, record) { token in
            let thrown = box._withUnsafeGuaranteedRef { $0.run(parameters) }
            if thrown != nil { thread.countError(endpoint) }
            end(thrown)
            record.close(token)  // Only the program might have replied, and it has never received the token.
        }
    }

    /// Returns the parameters of an event in the form for the program's handlers.
    func parameters(of post: Post) -> [String: Value] {
        let map = plugin_value_map(post.entries.baseAddress, UInt32(post.entries.count))
        return Value(copying: map, host: program.hostTable).map ?? [:]
    }
}

extension Table {
    /// Returns whether the generation of an endpoint is one of the table's.
    @inline(never)
    fileprivate func serves(_ endpoint: Unmanaged<Endpoint>) -> Bool {
        endpoint._withUnsafeGuaranteedRef { endpoint in generations.contains { $0 === endpoint.generation } }
    }
}
