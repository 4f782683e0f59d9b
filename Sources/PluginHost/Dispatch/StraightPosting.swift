import CPluginABI
import CPluginHost
import PluginABI

extension Dispatcher {
    /// The way of almost every event: to modules that handle it here and at once, for a poster who waits for nobody else.
    /// It means what ``deliver(_:_:to:of:_:isSticky:)`` does, which is for all events; nothing is allocated, and no lock
    /// is taken.
    ///
    /// - Parameters:
    ///   - record: Free, of this lane.
    ///   - table: In which the subscribers were found.
    func deliver(
        _ event: String, _ entries: UnsafeBufferPointer<plugin_entry>, straightTo subscribers: [Endpoint],
        of table: Table, _ call: Call, _ lane: Lane, _ record: CallRecord
    ) throws(PluginError) {
        let depth = try depth(of: event, below: call.parent)
        let start = profiler.started()
        record.occupy(
            .passUnretained(posting), label: posting.label, parent: call.parent, depth: depth, caller: call.caller)
        let token = record.open(call.receiver.completion, call.receiver.data, deadline: 0)
        lane.push()
        var (delivered, failures) = (0, [PluginError]())
        var limit: PluginError?
        for subscriber in subscribers where limit == nil {
            var failure: PluginError?
            var next: Endpoint? = subscriber
            while let present = next {
                let isThere = withUnsafeMutablePointer(to: &failure) { failure in
                    let receiver = Receiver(completion: Self.noteFailure, data: failure)
                    let handling = Call(
                        parent: token, timeout: 0, isRemote: false, mode: .synchronous, receiver: receiver,
                        caller: call.caller)
                    return handle(entries, by: present, of: table, handling, lane)
                }
                if isThere {
                    delivered += 1
                    break
                }
                // Replaced since the subscribers were listed: its successor gets it.
                next = registry.table.successor(of: present.generation)?.subscriptions[event]
            }
            if let failure, let next {
                failures.append(report(failure, of: event, in: next))
                if failure.code == .recursionLimit { limit = failures.last }
            }
        }
        if let start { profiler.note(.event, event, from: start) }
        answer(record, token, EventOutcome(delivered: delivered, failures: failures), limit)
        record.vacate()
        lane.pop()
    }

    private static let noteFailure: plugin_completion = { failure, _, error in
        if let error { failure!.assumingMemoryBound(to: PluginError?.self).pointee = PluginError(error.pointee) }
    }

    /// Calls one subscriber. Returns false when it has gone.
    @inline(__always)
    private func handle(
        _ entries: UnsafeBufferPointer<plugin_entry>, by endpoint: Endpoint, of listed: Table, _ call: Call,
        _ lane: Lane
    ) -> Bool {
        guard let record = lane.next else {
            call.receiver.receive(.recursionLimit)
            return true
        }
        let isThere = registry.read(lane) { table in
            guard table === listed || table.generations.contains(where: { $0 === endpoint.generation }) else {
                return false
            }
            occupy(record, .passUnretained(endpoint), call)
            return true
        }
        guard isThere else { return false }
        if !callStraight(.passUnretained(endpoint), entries, call, lane, record) {
            handleDeclared(entries, by: endpoint, call, lane, record)
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
