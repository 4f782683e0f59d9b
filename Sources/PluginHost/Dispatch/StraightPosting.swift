import CPluginABI
import CPluginHost
import PluginABI

extension Dispatcher {
    /// The way of almost every event: to modules that handle it here and at once, for a poster who waits for nobody else.
    /// It means what ``deliver(_:_:to:of:_:isSticky:)`` does, which is for all events; no lock is taken.
    ///
    /// - Parameters:
    ///   - record: Free, of this lane.
    ///   - table: In which the subscribers were found.
    func deliver(
        _ event: plugin_string, _ entries: UnsafeBufferPointer<plugin_entry>,
        straightTo subscribers: [Unmanaged<Endpoint>], of table: Table, _ call: Call, _ lane: Lane, _ record: CallRecord
    ) throws(PluginError) {
        let depth = try depth(of: event.text, below: call.parent)
        let start = profiler.started()
        record.occupy(
            .passUnretained(posting), label: posting.label, parent: call.parent, depth: depth, caller: call.caller)
        let token = record.open(call.receiver.completion, call.receiver.data, deadline: 0)
        lane.push()
        var (delivered, failures) = (0, [PluginError]())
        var failure: PluginError?
        withUnsafeMutablePointer(to: &failure) { failure in
            let handling = Call(
                parent: token, timeout: 0, isRemote: false, mode: .synchronous,
                receiver: Receiver(completion: Self.noteFailure, data: failure), caller: call.caller)
            for subscriber in subscribers {
                guard let reached = reach(subscriber, of: table, event, entries, handling, lane) else { continue }
                delivered += 1
                guard let error = failure.pointee else { continue }
                failures.append(report(error, of: event.text, in: reached.takeUnretainedValue()))
                // Calls are nested too deeply: nobody else gets the event.
                if error.code == .recursionLimit { break }
                failure.pointee = nil
            }
        }
        if let start { profiler.note(.event, event.text, from: start) }
        let limit = failure == nil ? nil : failures.last
        answer(record, token, EventOutcome(delivered: delivered, failures: failures), limit)
        record.vacate()
        lane.pop()
    }

    /// Calls one subscriber or, when it was replaced since the subscribers were listed, its successor. Returns who was
    /// called; nil when it has gone.
    @inline(__always)
    private func reach(
        _ subscriber: Unmanaged<Endpoint>, of table: Table, _ event: plugin_string,
        _ entries: UnsafeBufferPointer<plugin_entry>, _ call: Call, _ lane: Lane
    ) -> Unmanaged<Endpoint>? {
        if handle(entries, by: subscriber, of: table, call, lane) { return subscriber }
        return reachSuccessor(of: subscriber.takeUnretainedValue(), of: table, event.text, entries, call, lane)
    }

    @inline(never)
    private func reachSuccessor(
        of subscriber: Endpoint, of table: Table, _ event: String, _ entries: UnsafeBufferPointer<plugin_entry>,
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
        _ entries: UnsafeBufferPointer<plugin_entry>, by endpoint: Unmanaged<Endpoint>, of listed: Table, _ call: Call,
        _ lane: Lane
    ) -> Bool {
        guard let record = lane.next else {
            call.receiver.receive(.recursionLimit)
            return true
        }
        let isThere = registry.read(lane) { table in
            guard table === listed || table.serves(endpoint) else { return false }
            occupy(record, endpoint, call)
            return true
        }
        guard isThere else { return false }
        if !callStraight(endpoint, entries, call, lane, record) {
            handleDeclared(entries, by: endpoint.takeUnretainedValue(), call, lane, record)
        }
        return true
    }

    /// What a subscriber does not declare is left out for it.
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

    @inline(__always)
    private func answer(_ record: CallRecord, _ token: plugin_token, _ outcome: EventOutcome, _ limit: PluginError?) {
        guard record.beginReply(token) != nil else { return }
        if let limit {
            limit.lend { record.complete(nil, $0) }
        } else {
            outcome.lend { record.complete($0, nil) }
        }
        finishReply(record, token)
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

extension Table {
    /// Whether the generation of an endpoint is one of its own.
    @inline(never)
    fileprivate func serves(_ endpoint: Unmanaged<Endpoint>) -> Bool {
        endpoint._withUnsafeGuaranteedRef { endpoint in generations.contains { $0 === endpoint.generation } }
    }
}
