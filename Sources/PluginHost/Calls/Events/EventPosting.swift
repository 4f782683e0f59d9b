import CPluginABI
import PluginABI
import Synchronization

// An event is a call of its own, with a record and a token, whose nested calls are those of the subscribers.

extension Calls {
    /// An event: everybody who subscribes to it.
    func post(
        _ request: borrowing plugin_request, _ call: Call, from caller: Generation, _ lane: Lane
    ) throws(PluginError) -> plugin_token {
        let (name, entries) = try request.namedEvent()
        if call.isRemote {
            throw PluginError(.notRemote, "The event “\(name.text.shortened)” cannot be posted by other programs.")
        }
        if !caller.isProgram, name.isOfHost {
            throw PluginError(
                .refused,
                "“\(name.text.shortened)” is a name for events of the host. Post “\(caller.name).…” instead.")
        }
        var number: Int?
        if request.flags & PLUGIN_REQUEST_STICKY != 0 {
            // Before the table is taken: who is not in it yet finds the event when it comes.
            let copies = entries.map { ($0.key.text, Value(copying: $0.value, host: program.hostTable)) }
            number = core.events.keep(name.text, Parameters(copies))
        }
        let table = registry.current(lane)
        let event = name.text
        return try deliver(
            event, entries, to: subscribers(of: event, number: number, in: table), of: table, call,
            isSticky: number != nil)
    }

    /// Modules in their order, then the program.
    ///
    /// - Parameter number: Of a sticky event; newcomers that get it as such are left out.
    private func subscribers(of event: String, number: Int? = nil, in table: Table) -> [Subscriber] {
        var modules = table.moduleSubscribers(of: event).map(Subscriber.module)
        let handlers = core.events.handlers(of: event, number: number)
        if let number { modules.removeAll { $0.misses(number) } }
        return handlers.isEmpty ? modules : modules + handlers.map(Subscriber.program)
    }

    /// Tells subscribers one after the other, and the receiver of the call when all have ended; in mode `.synchronous`
    /// without waiting for the asynchronous ones.
    ///
    /// - Parameters:
    ///   - table: In which all of them were found; nil when they are to be looked for in the present one.
    ///   - isSticky: Whether newcomers get it in any case.
    func deliver(
        _ event: String, _ entries: UnsafeBufferPointer<plugin_entry>, to subscribers: [Subscriber], of table: Table?,
        _ call: Call, isSticky: Bool = false
    ) throws(PluginError) -> plugin_token {
        let depth = try depth(of: event, below: call.parent)
        guard let record = RecordPool.take() else {
            throw PluginError(.recursionLimit, "More than eight million asynchronous calls are in flight.")
        }
        record.occupy(core.ownActions.posting, parent: call.parent, depth: depth, caller: call.caller)
        record.hold()
        let deadline = deadline(in: call.timeout, from: record.since)
        let token = record.open(call.receiver.completion, call.receiver.data, deadline: deadline)
        let posting = Posting(event, token, call.caller, self)
        for subscriber in subscribers where !posting.isBroken {
            switch subscriber {
            case .module(let endpoint):
                var next: Endpoint? = endpoint
                while let present = next, !deliver(entries, to: present, of: table, posting, call.mode) {
                    // Replaced since the subscribers were listed: its successor gets it, a sticky one when it starts.
                    next = isSticky ? nil : registry.table.successor(of: present.generation)?.subscriptions[event]
                }
            case .program(let handler): deliver(entries, to: handler, posting, call.mode)
            }
        }
        posting.endDelivery(waits: call.mode == .any)
        let isOver = record.phase(of: token) == .over
        if !isOver, deadline != 0 { Deadlines.note(deadline) }
        release(record, core.ownActions.posting.takeUnretainedValue(), leavesGate: true)
        return isOver ? 0 : token
    }

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
        var token = parent
        while token != 0, let record = CallRecord(token: token) {
            let (endpoint, next, above) = (record.endpoint, record.parent, record.depth)
            guard record.phase(of: token) != .over else { break }
            if token == parent { depth = above + 1 }
            if let endpoint, endpoint.name == name, !endpoint.isStandIn { repetitions += 1 }
            token = next
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

    /// False when the subscriber has gone.
    private func deliver(
        _ entries: UnsafeBufferPointer<plugin_entry>, to endpoint: Endpoint, of listed: Table?, _ posting: Posting,
        _ mode: Mode
    ) -> Bool {
        let interception = core.isIntercepting.load(ordering: .relaxed) ? registry.table.interception : nil
        let isAsync = endpoint.isAsync || interception?.isAsync(around: endpoint, in: registry.table) == true
        func deliver(_ declared: UnsafeBufferPointer<plugin_entry>) -> Bool {
            posting.deliver(to: endpoint, isAsync: isAsync, mode) { call in
                self.call(endpoint, declared, call, through: interception) { lane, record in
                    // Who has gone since the subscribers were listed gets nothing any more. As long as the table is the
                    // same, nobody has gone.
                    registry.read(lane) { table in
                        guard table === listed || table.generations.contains(where: { $0 === endpoint.generation })
                        else { return false }
                        occupy(record, .passUnretained(endpoint), call)
                        return true
                    }
                }
            }
        }
        let isDeclared = { (entry: plugin_entry) in endpoint.parameters.contains { $0.key == entry.key } }
        if entries.allSatisfy(isDeclared) { return deliver(entries) }
        return entries.filter(isDeclared).withUnsafeBufferPointer(deliver)
    }

    private func deliver(
        _ entries: UnsafeBufferPointer<plugin_entry>, to handler: plugin_object, _ posting: Posting, _ mode: Mode
    ) {
        guard ObjectTable.retain(handler) else { return }
        let (type, instance) = ObjectTable.contents(of: handler)
        let endpoint = EventHandlerBox.endpoint(of: type)
        var argument = plugin_entry()
        argument.value = plugin_value_map(entries.baseAddress, UInt32(entries.count))
        _ = withUnsafePointer(to: argument) { argument in
            posting.deliver(to: endpoint, isAsync: endpoint.isAsync, mode) { call in
                self.call(endpoint, UnsafeBufferPointer(start: argument, count: 1), call, instance: instance) {
                    _, record in
                    occupy(record, .passUnretained(endpoint), call)
                    record.object = handler
                    return true
                }
            }
        }
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

// MARK: Sticky events, and those of the host

extension Calls {
    /// Tells modules that have started the sticky events that were posted before.
    func deliverSticky(to newcomers: [Generation]) {
        for newcomer in newcomers {
            for event in core.events.admit(newcomer) {
                if let endpoint = newcomer.subscriptions[event.name] { deliverSticky(event, to: .module(endpoint)) }
            }
        }
    }

    func deliverSticky(_ event: EventBoard.StickyEvent, to subscriber: Subscriber) {
        guard core.events.isLast(event) else { return }
        let receiver = Receiver(completion: { _, _, _ in }, data: nil)
        let parent = Lane.current?.currentCall ?? 0
        let call = Call(parent: parent, timeout: 0, isRemote: false, mode: .synchronous, receiver: receiver)
        do throws(PluginError) {
            try event.parameters.withEntries { (entries, count) throws(PluginError) in
                let entries = UnsafeBufferPointer(start: entries, count: count)
                _ = try deliver(event.name, entries, to: [subscriber], of: nil, call)
            }
        } catch {
            settings.log(
                LogEntry(
                    level: .error,
                    message: "The event “\(event.name.shortened)” failed: "
                        + "\(error.message)"))
        }
    }

    /// Posts an event of the host's. Asynchronous subscribers are awaited where a timeout is given.
    func postHostEvent(_ event: String, _ parameters: [String: Value] = [:], waitingAtMost timeout: Duration? = nil) {
        guard hasSubscribers(event) else { return }
        let outcome = AwaitedOutcome(for: program)
        let call = Call(
            parent: Lane.current?.currentCall ?? 0, timeout: timeout?.nanoseconds ?? 0, isRemote: false,
            mode: timeout == nil ? .synchronous : .any, receiver: outcome.receiver())
        do throws(PluginError) {
            try Parameters(parameters).withEntries { (entries, count) throws(PluginError) in
                let entries = UnsafeBufferPointer(start: entries, count: count)
                let table = registry.table
                _ = try deliver(event, entries, to: subscribers(of: event, in: table), of: table, call)
            }
        } catch {
            call.receiver.receive(error)
        }
        do throws(PluginError) { try outcome.wait() } catch {
            settings.log(LogEntry(level: .warning, message: "The event “\(event.shortened)” failed: \(error.message)"))
        }
    }

    func hasSubscribers(_ event: String) -> Bool {
        !core.events.handlers(of: event).isEmpty || !registry.table.moduleSubscribers(of: event).isEmpty
    }
}
