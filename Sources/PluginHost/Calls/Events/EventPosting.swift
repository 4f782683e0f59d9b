import CPluginHost
import PluginABI
import Synchronization

extension Calls {
    /// Posts an event to all of its subscribers.
    func post(
        _ request: borrowing plugin_request, _ call: Call, from caller: Generation, _ thread: ThreadContext
    ) throws(PluginError) -> plugin_token {
        let (name, entries) = try request.namedEvent()
        let event = name.text
        if call.isRemote {
            throw PluginError(.notRemote, "The event “\(event.shortened)” cannot be posted by other programs.")
        }
        if !caller.isProgram, name.isOfHost {
            throw PluginError(
                .refused,
                "“\(event.shortened)” is a name reserved for events of the host. Post “\(caller.name).…” instead.")
        }
        let kept = try startSubscribers(of: event, flags: request.flags, entries, call, from: caller, thread)
        if let kept { return kept }
        var number: Int?
        if request.flags & PLUGIN_REQUEST_STICKY != 0 {
            // The event is stored before the table is read, so that a module which is not in the table yet receives it
            // when it is added.
            let copies = entries.map { ($0.key.text, Value(copying: $0.value, host: program.hostTable)) }
            number = core.events.keep(event, Parameters(copies))
        }
        let table = registry.current(thread)
        return try deliver(
            event, entries, to: subscribers(of: event, number: number, in: table), of: table, call,
            isSticky: number != nil)
    }

    /// Starts the registered modules that subscribe to an event. A failure is logged; the others still receive the
    /// event.
    ///
    /// - Returns: The token of the call if the call is stored until a module has started; otherwise `nil`.
    private func startSubscribers(
        of event: String, flags: UInt32, _ entries: UnsafeBufferPointer<plugin_entry>, _ call: Call,
        from caller: Generation, _ thread: ThreadContext
    ) throws(PluginError) -> plugin_token? {
        for module in registry.current(thread).contents.known.subscribers[event] ?? [] {
            guard let record = thread.next else { throw .recursionLimit }
            do throws(PluginError) {
                let address = WaitingAddress.event(event, flags: flags, caller: caller)
                if let kept = try start(module, for: address, entries, call, thread, record) { return kept }
            } catch {
                settings.log(LogEntry(level: .error, module: module.name, message: error.message))
            }
        }
        return nil
    }

    /// Returns the subscribers: the modules in their order, then the program.
    ///
    /// - Parameter number: The number of a sticky event. Subscribers that receive it as a sticky event, because they
    ///   were added later, are left out.
    func subscribers(of event: String, number: Int? = nil, in table: Table) -> [Subscriber] {
        var modules = table.moduleSubscribers(of: event).map(Subscriber.module)
        let handlers = core.events.handlers(of: event, number: number)
        if let number { modules.removeAll { $0.misses(number) } }
        return handlers.isEmpty ? modules : modules + handlers.map(Subscriber.program)
    }

    /// Calls subscribers one after the other, and completes the call when all have ended, or, in mode `.synchronous`,
    /// without waiting for the asynchronous ones.
    ///
    /// - Parameters:
    ///   - table: The table that lists all subscribers; `nil` if they must be looked up in the current one.
    ///   - isSticky: Whether the event is sticky, so that modules receive it when they start.
    func deliver(
        _ event: String, _ entries: UnsafeBufferPointer<plugin_entry>, to subscribers: [Subscriber], of table: Table?,
        _ call: Call, isSticky: Bool = false
    ) throws(PluginError) -> plugin_token {
        let depth = try depth(of: event, below: call.parent)
        guard let record = RecordPool.take() else { throw .tooManyCalls }
        record.occupy(core.ownActions.posting, parent: call.parent, depth: depth, caller: call.caller)
        record.retain()
        let deadline = deadline(in: call.timeout, from: record.since)
        let token = record.open(call.receiver.completion, call.receiver.data, deadline: deadline)
        let posting = Posting(event, token, call.caller, self)
        event.withPluginString { name in
            let post = Post(
                event: name, entries: entries, caller: call.caller, token: token, depth: depth + 1,
                since: record.since, table: table?.number ?? 0)
            for subscriber in subscribers where !posting.isBroken {
                switch subscriber {
                case .module(let endpoint):
                    var next: Endpoint? = endpoint
                    while let present = next, !deliver(post, to: present, posting, call.mode) {
                        // The module was replaced after the subscribers were listed. Its successor receives the event
                        // now, or, if the event is sticky, when it starts.
                        next = isSticky ? nil : successor(of: present, for: event)
                    }
                case .program(let handler): deliver(post, to: handler, posting)
                }
            }
        }
        posting.endDelivery(waits: call.mode == .any)
        let isOver = record.phase(of: token) == .over
        if !isOver, deadline != 0 { Deadlines.note(deadline) }
        release(record, core.ownActions.posting.takeUnretainedValue(), leavesGate: true)
        return isOver ? 0 : token
    }

    /// Delivers an event to one subscriber. Returns false if the subscriber no longer exists.
    private func deliver(_ post: Post, to endpoint: Endpoint, _ posting: Posting, _ mode: Mode) -> Bool {
        let interception = core.isIntercepting.load(ordering: .relaxed) ? registry.table.interception : nil
        let isAsync = endpoint.isAsync || interception?.isAsync(around: endpoint, in: registry.table) == true
        return posting.deliver(to: endpoint) { receiver in
            handle(
                post, by: .passUnretained(endpoint), plugin_host_coarse_now(), isAsync ? .any : mode, receiver,
                ThreadContext.current, through: interception)
        }
    }

    private func deliver(_ post: Post, to handler: plugin_object, _ posting: Posting) {
        guard ObjectTable.retain(handler) else { return }
        defer { _ = ObjectTable.release(handler) }
        let (type, instance) = ObjectTable.contents(of: handler)
        let endpoint = EventHandlerBox.endpoint(of: type)
        _ = posting.deliver(to: endpoint) { receiver in
            guard endpoint.isAsync else {
                run(handler, instance, endpoint, parameters(of: post), post, ThreadContext.current) { thrown in
                    receiver.receive { () throws(PluginError) in
                        if let thrown { throw thrown }
                        return .null
                    }
                }
                return true
            }
            var argument = plugin_entry()
            argument.value = plugin_value_map(post.entries.baseAddress, UInt32(post.entries.count))
            let call = post.call(.any, receiver)
            return withUnsafePointer(to: argument) { argument in
                self.call(endpoint, UnsafeBufferPointer(start: argument, count: 1), call, instance: instance) {
                    _, record in
                    occupy(record, .passUnretained(endpoint), call)
                    if ObjectTable.retain(handler) { record.object = handler }
                    return true
                }
            }
        }
    }
}
