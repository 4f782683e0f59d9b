import CPluginABI
import CPluginHost
import Glibc
import PluginABI

extension Calls {
    /// The way of almost every event: to modules, and the program, that handle it here and at once, for a poster who waits
    /// for nobody else. It means what ``post(_:_:from:_:)`` does, which is for all events. Once the profile is full no lock
    /// is taken (unless the program seems to subscribe, too), and of what all threads share nothing is written but the
    /// durations that are measured now and then, and the count of who keeps a list of many subscribers.
    ///
    /// - Parameter record: Free, of this lane.
    /// - Returns: false, with nothing done, for any other event, and where something is wrong.
    func postStraight(
        _ asked: UnsafePointer<plugin_request>, parent: plugin_token, from caller: Generation, to receiver: Receiver,
        _ lane: Lane, _ record: CallRecord
    ) -> Bool {
        let (event, entries) = (asked.pointee.target, asked.pointee.entries)
        guard asked.pointee.flags == 0, asked.pointee.timeout <= 0, asked.pointee.isNamedEvent,
            caller.isProgram || !event.isOfHost,
            let depth = try? depth(of: event.text, below: parent)
        else { return false }
        let hash = NameTable.hash(event)
        let program = core.events.program(for: event, hash: hash)
        if let program, program.synchronous == nil { return false }
        return withUnsafeTemporaryAllocation(of: Unmanaged<Endpoint>.self, capacity: Subscribers.fewAreUpTo) { few in
            guard let subscribers = straightSubscribers(of: event, hash, few, lane) else { return false }
            let start = core.profiler.started(lane)
            record.occupy(core.ownActions.posting, parent: parent, depth: depth, caller: .passUnretained(caller))
            let token = record.open(receiver.completion, receiver.data, deadline: 0)
            lane.push()
            let post = Post(
                event: event, entries: entries, caller: .passUnretained(caller), token: token, depth: depth + 1,
                since: record.since, table: subscribers.table)
            var delivery = deliver(post, to: subscribers.endpoints, lane)
            subscribers.retained?.release()
            if let program { deliver(post, to: program, lane, &delivery) }
            if let start { core.profiler.note(.event, event.text, from: start) }
            delivery.lend { record.complete(token, $0, $1) }
            record.close(token)  // Only the program might have answered, and it has never been told the token.
            record.vacate()
            lane.pop()
            return true
        }
    }

    /// Who gets an event, as a table lists them.
    private struct Subscribers {
        let endpoints: UnsafeBufferPointer<Unmanaged<Endpoint>>
        /// What has them; nil for few, which have been copied.
        let retained: Unmanaged<ModuleSubscribers>?
        /// The number of the table.
        let table: UInt64

        static let fewAreUpTo = 8
    }

    /// Who subscribes to an event; nil where that is not all, or not all of them are synchronous.
    ///
    /// - Parameter few: Where to copy them to: endpoints are never freed, their list is. To keep that would be a count
    ///   that all threads share.
    @inline(__always)
    private func straightSubscribers(
        of event: plugin_string, _ hash: UInt64, _ few: UnsafeMutableBufferPointer<Unmanaged<Endpoint>>, _ lane: Lane
    ) -> Subscribers? {
        registry.read(lane) { table in
            guard table.interception == nil else { return nil }
            guard let found = table.subscribers(of: event, hash: hash) else {
                return Subscribers(endpoints: .init(start: nil, count: 0), retained: nil, table: table.number)
            }
            return found._withUnsafeGuaranteedRef { subscribers in
                let endpoints = subscribers.endpoints
                guard subscribers.areSynchronous else { return nil }
                guard endpoints.count <= few.count else {
                    return Subscribers(endpoints: endpoints, retained: found.retain(), table: table.number)
                }
                for index in endpoints.indices { few.initializeElement(at: index, to: endpoints[index]) }
                return Subscribers(
                    endpoints: .init(start: few.baseAddress, count: endpoints.count), retained: nil,
                    table: table.number)
            }
        }
    }

    /// An event that is delivered.
    private struct Post {
        let event: plugin_string
        let entries: UnsafeBufferPointer<plugin_entry>
        let caller: Unmanaged<Generation>
        /// The call that the subscribers are called for, and the depth of their calls.
        let token: plugin_token
        let depth: UInt32
        /// When it began, as the record has it: that of the first subscriber need not ask the clock again.
        let since: Int64
        /// The number of the table that lists the subscribers.
        let table: UInt64
    }

    /// What has become of an event.
    private struct Delivery {
        var delivered = 0
        var failed: Failed?

        final class Failed {
            var errors: [PluginError] = []
            /// Whether calls were nested too deeply: nobody else gets the event then, and the last error is the answer.
            var isAtLimit = false
        }

        var isAtLimit: Bool { failed?.isAtLimit ?? false }

        func lend(to body: (UnsafePointer<plugin_value>?, UnsafePointer<plugin_error>?) -> Void) {
            guard let failed else { return EventOutcome.lend(delivered: delivered) { body($0, nil) } }
            if failed.isAtLimit { return failed.errors.last!.lend { body(nil, $0) } }
            EventOutcome(delivered: delivered, failures: failed.errors).lend { body($0, nil) }
        }
    }

    /// Calls the subscribers, one after the other.
    @inline(__always)
    private func deliver(
        _ post: Post, to subscribers: UnsafeBufferPointer<Unmanaged<Endpoint>>, _ lane: Lane
    ) -> Delivery {
        var delivery = Delivery()
        var failure: PluginError?
        withUnsafeMutablePointer(to: &failure) { failure in
            let receiver = Receiver(completion: Self.noteFailure, data: failure)
            for (place, subscriber) in subscribers.enumerated() {
                let since = place == 0 ? post.since : plugin_host_coarse_now()
                guard let reached = reach(subscriber, post, since, receiver, lane) else { continue }
                delivery.delivered += 1
                guard let error = failure.pointee else { continue }
                failure.pointee = nil
                note(error, of: post, in: reached.takeUnretainedValue(), lane, &delivery)
                if delivery.isAtLimit { break }
            }
        }
        return delivery
    }

    /// Notes and logs that a subscriber has failed.
    @inline(never)
    private func note(
        _ error: PluginError, of post: Post, in endpoint: Endpoint, _ lane: Lane, _ delivery: inout Delivery
    ) {
        let failed = delivery.failed ?? Delivery.Failed()
        delivery.failed = failed
        failed.isAtLimit = error.code == .recursionLimit
        // What the log posts is posted from inside the subscriber, whose call stands here again until then: else it could
        // log and fail without end.
        let record = lane.next
        if let record {
            record.occupy(
                .passUnretained(endpoint), parent: post.token, depth: post.depth, caller: post.caller)
            _ = record.open({ _, _, _ in }, nil, deadline: 0, in: lane)
            lane.push()
        }
        failed.errors.append(report(error, of: post.event.text, in: endpoint))
        if let record {
            record.close(record.token)
            record.vacate()
            lane.pop()
        }
    }

    /// Calls the handlers of the program, one after the other, with the same parameters.
    @inline(never)
    private func deliver(_ post: Post, to program: ProgramSubscribers, _ lane: Lane, _ delivery: inout Delivery) {
        guard !delivery.isAtLimit, let endpoint = program.synchronous else { return }
        let map = plugin_value_map(post.entries.baseAddress, UInt32(post.entries.count))
        let parameters = Value(copying: map, host: self.program.hostTable).map ?? [:]
        for object in program.handlers.lazy.map(\.object) where ObjectTable.retain(object) {
            defer { _ = ObjectTable.release(object) }
            guard let instance = ObjectTable.contents(of: object).1 else { continue }
            delivery.delivered += 1
            guard let record = lane.next, post.depth <= PLUGIN_DEPTH_MAX else {
                return note(.recursionLimit, of: post, in: endpoint, lane, &delivery)
            }
            record.occupy(
                .passUnretained(endpoint), parent: post.token, depth: post.depth, caller: post.caller)
            record.object = object
            var thrown: PluginError?
            runStraight(endpoint, Receiver(completion: { _, _, _ in }, data: nil), lane, record) { token, result in
                thrown = Unmanaged<EventHandlerBox>.fromOpaque(instance)._withUnsafeGuaranteedRef { $0.run(parameters) }
                if let thrown { fail(record, token, thrown) } else { result.pointee = plugin_value_null() }
            }
            if let thrown { note(thrown, of: post, in: endpoint, lane, &delivery) }
            if delivery.isAtLimit { return }
        }
    }

    /// Calls one subscriber or, when it was replaced since the subscribers were listed, its successor. Returns who was
    /// called; nil when it has gone.
    @inline(__always)
    private func reach(
        _ subscriber: Unmanaged<Endpoint>, _ post: Post, _ since: Int64, _ receiver: Receiver, _ lane: Lane
    ) -> Unmanaged<Endpoint>? {
        if handle(post, by: subscriber, since, receiver, lane) { return subscriber }
        return reachSuccessor(of: subscriber.takeUnretainedValue(), post, since, receiver, lane)
    }

    @inline(never)
    private func reachSuccessor(
        of subscriber: Endpoint, _ post: Post, _ since: Int64, _ receiver: Receiver, _ lane: Lane
    ) -> Unmanaged<Endpoint>? {
        var gone = subscriber
        while let next = registry.table.successor(of: gone.generation)?.subscriptions[post.event.text] {
            if handle(post, by: .passUnretained(next), since, receiver, lane) { return .passUnretained(next) }
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
        _ post: Post, by endpoint: Unmanaged<Endpoint>, _ since: Int64, _ receiver: Receiver, _ lane: Lane
    ) -> Bool {
        guard let record = lane.next else {
            receiver.receive(.recursionLimit)
            return true
        }
        let isThere = registry.read(lane) { table in
            guard table.number == post.table || table.serves(endpoint) else { return false }
            record.occupy(endpoint, parent: post.token, depth: post.depth, caller: post.caller, since: since)
            return true
        }
        guard isThere else { return false }
        if !callStraight(endpoint, post.entries, receiver, lane, record) {
            handleDeclared(post, by: endpoint.takeUnretainedValue(), receiver, lane, record)
        }
        return true
    }

    /// What a subscriber does not declare is left out for it.
    @inline(never)
    private func handleDeclared(
        _ post: Post, by endpoint: Endpoint, _ receiver: Receiver, _ lane: Lane, _ record: CallRecord
    ) {
        let declared = post.entries.filter { entry in endpoint.parameters.contains { $0.key == entry.key } }
        let call = Call(
            parent: post.token, timeout: 0, isRemote: false, mode: .synchronous, receiver: receiver,
            caller: post.caller)
        do throws(PluginError) {
            _ = try Result { () throws(PluginError) in
                try declared.withUnsafeBufferPointer { (declared) throws(PluginError) in
                    try invoke(endpoint, declared, call, lane, record)
                }
            }.get()
        } catch {
            refuse(error, receiver, lane, record)
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
                message: "The event “\(event.shortened)” failed in \(name ?? "the program"): \(error.message) "
                    + "(\(error.code))"))
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
