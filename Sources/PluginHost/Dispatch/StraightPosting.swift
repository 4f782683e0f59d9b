import CPluginABI
import CPluginHost
import Glibc
import PluginABI

extension Dispatcher {
    /// The way of almost every event: to modules that handle it here and at once, for a poster who waits for nobody else.
    /// It means what ``post(_:_:from:_:)`` does, which is for all events. No lock is taken, unless the program subscribes
    /// to events, too.
    ///
    /// - Parameter record: Free, of this lane.
    /// - Returns: false, with nothing done, for any other event, and where something is wrong.
    func postStraight(
        _ asked: UnsafePointer<plugin_request>, parent: plugin_token, from caller: Generation, to receiver: Receiver,
        _ lane: Lane, _ record: CallRecord
    ) -> Bool {
        let event = asked.pointee.target
        guard asked.pointee.flags == 0, asked.pointee.timeout <= 0,
            let entries = try? asked.pointee.namedEvent().entries,
            caller.isProgram || !event.isOfHost, !events.hasHandlers(of: event),
            let depth = try? depth(of: event.text, below: parent),
            let (subscribers, table) = straightSubscribers(of: event, lane)
        else { return false }
        let start = profiler.started()
        record.occupy(
            .passUnretained(posting), label: posting.label, parent: parent, depth: depth,
            caller: .passUnretained(caller))
        let token = record.open(receiver.completion, receiver.data, deadline: 0)
        lane.push()
        let outcome = deliver(event, entries, to: subscribers, of: table, within: token, from: caller, lane)
        subscribers?.release()
        if let start { profiler.note(.event, event.text, from: start) }
        if record.beginReply(token) != nil {
            outcome.lend { record.complete(token, $0, $1) }
            finishReply(record, token)
        }
        record.vacate()
        lane.pop()
        return true
    }

    /// Who subscribes to an event, retained, and the number of the table that says so; nil where that is not all.
    @inline(__always)
    private func straightSubscribers(
        of event: plugin_string, _ lane: Lane
    ) -> (subscribers: Unmanaged<ModuleSubscribers>?, table: UInt64)? {
        registry.read(lane) { table in
            guard table.interception == nil else { return nil }
            guard let found = table.subscribers(of: event) else { return (nil, table.number) }
            return found._withUnsafeGuaranteedRef(\.areSynchronous) ? (found.retain(), table.number) : nil
        }
    }

    /// What has become of an event; `limit` is there when calls were nested too deeply, and then that is the answer.
    private struct Delivery: ~Copyable {
        var delivered = 0
        var failures: [PluginError]?
        var limit: PluginError?

        func lend(to body: (UnsafePointer<plugin_value>?, UnsafePointer<plugin_error>?) -> Void) {
            if let limit { return limit.lend { body(nil, $0) } }
            guard let failures else { return EventOutcome.lend(delivered: delivered) { body($0, nil) } }
            EventOutcome(delivered: delivered, failures: failures).lend { body($0, nil) }
        }
    }

    /// Calls the subscribers, one after the other.
    @inline(__always)
    private func deliver(
        _ event: plugin_string, _ entries: UnsafeBufferPointer<plugin_entry>,
        to subscribers: Unmanaged<ModuleSubscribers>?, of table: UInt64, within token: plugin_token,
        from caller: Generation, _ lane: Lane
    ) -> Delivery {
        var delivery = Delivery()
        var failure: PluginError?
        subscribers?._withUnsafeGuaranteedRef { subscribers in
            withUnsafeMutablePointer(to: &failure) { failure in
                let handling = Call(
                    parent: token, timeout: 0, isRemote: false, mode: .synchronous,
                    receiver: Receiver(completion: Self.noteFailure, data: failure), caller: .passUnretained(caller))
                for subscriber in subscribers.endpoints {
                    guard let reached = reach(subscriber, of: table, event, entries, handling, lane) else { continue }
                    delivery.delivered += 1
                    guard let error = failure.pointee else { continue }
                    delivery.failures =
                        (delivery.failures ?? []) + [
                            report(error, of: event.text, in: reached.takeUnretainedValue())
                        ]
                    failure.pointee = nil
                    // Calls are nested too deeply: nobody else gets the event.
                    if error.code == .recursionLimit {
                        delivery.limit = delivery.failures?.last
                        break
                    }
                }
            }
        }
        return delivery
    }

    /// Calls one subscriber or, when it was replaced since the subscribers were listed, its successor. Returns who was
    /// called; nil when it has gone.
    @inline(__always)
    private func reach(
        _ subscriber: Unmanaged<Endpoint>, of table: UInt64, _ event: plugin_string,
        _ entries: UnsafeBufferPointer<plugin_entry>, _ call: Call, _ lane: Lane
    ) -> Unmanaged<Endpoint>? {
        if handle(entries, by: subscriber, of: table, call, lane) { return subscriber }
        return reachSuccessor(of: subscriber.takeUnretainedValue(), of: table, event.text, entries, call, lane)
    }

    @inline(never)
    private func reachSuccessor(
        of subscriber: Endpoint, of table: UInt64, _ event: String, _ entries: UnsafeBufferPointer<plugin_entry>,
        _ call: Call, _ lane: Lane
    ) -> Unmanaged<Endpoint>? {
        var gone = subscriber
        while let next = registry.table.successor(of: gone.generation)?.subscriptions[event] {
            if handle(entries, by: .passUnretained(next), of: table, call, lane) { return .passUnretained(next) }
            gone = next
        }
        return nil
    }

    private static let noteFailure: plugin_completion = { failure, _, error in
        if let error { failure!.assumingMemoryBound(to: PluginError?.self).pointee = PluginError(error.pointee) }
    }

    /// Calls one subscriber. Returns false when it has gone.
    @inline(__always)
    private func handle(
        _ entries: UnsafeBufferPointer<plugin_entry>, by endpoint: Unmanaged<Endpoint>, of listed: UInt64, _ call: Call,
        _ lane: Lane
    ) -> Bool {
        guard let record = lane.next else {
            call.receiver.receive(.recursionLimit)
            return true
        }
        let isThere = registry.read(lane) { table in
            guard table.number == listed || table.serves(endpoint) else { return false }
            occupy(record, endpoint, call)
            return true
        }
        guard isThere else { return false }
        if !callStraight(endpoint, entries, call.receiver, lane, record) {
            handleDeclared(entries, by: endpoint.takeUnretainedValue(), call, lane, record)
        }
        return true
    }

    /// What a subscriber does not declare is left out for it.
    @inline(never)
    private func handleDeclared(
        _ entries: UnsafeBufferPointer<plugin_entry>, by endpoint: Endpoint, _ call: Call, _ lane: Lane,
        _ record: CallRecord
    ) {
        let declared = entries.filter { entry in endpoint.parameters.contains { $0.key == entry.key } }
        do throws(PluginError) {
            _ = try Result { () throws(PluginError) in
                try declared.withUnsafeBufferPointer { (declared) throws(PluginError) in
                    try invoke(endpoint, declared, call, lane, record)
                }
            }.get()
        } catch {
            refuse(error, call.receiver, lane, record)
        }
    }

    /// Logs that a subscriber has failed, and returns the error with its source.
    func report(_ error: PluginError, of event: String, in endpoint: Endpoint) -> PluginError {
        var error = error
        let name = endpoint.generation.sourceName
        if error.source == nil { error.source = name }
        settings.log(
            LogEntry(
                level: .error, module: name,
                message: "The event “\(event)” failed in \(name ?? "the program"): \(error.message) (\(error.code))"))
        return error
    }
}

extension plugin_string {
    /// Whether it is a name for events of the host.
    var isOfHost: Bool { begins(with: "host.") || begins(with: "module.") || begins(with: "configuration.") }

    private func begins(with prefix: StaticString) -> Bool {
        count >= prefix.utf8CodeUnitCount && memcmp(bytes, prefix.utf8Start, prefix.utf8CodeUnitCount) == 0
    }
}

extension Table {
    /// Whether the generation of an endpoint is one of its own.
    @inline(never)
    fileprivate func serves(_ endpoint: Unmanaged<Endpoint>) -> Bool {
        endpoint._withUnsafeGuaranteedRef { endpoint in generations.contains { $0 === endpoint.generation } }
    }
}
