import CPluginABI
import CPluginHost
import PluginABI

extension Calls {
    /// The fast path of almost every event: one that is posted in mode `.synchronous`, and that all subscribers, in
    /// modules and in the program, handle synchronously. It does the same as ``post(_:_:from:_:)``, which handles all
    /// events. Once the profile is full, no lock is needed. The only shared memory that it writes is that of the
    /// durations, which are measured now and then, the reference counts of long lists of subscribers, and those of the
    /// program's handlers.
    ///
    /// - Parameter record: A free record of this thread context.
    /// - Returns: False, without doing anything, for any other event, and if the request is invalid.
    func postFast(
        _ asked: UnsafePointer<plugin_request>, parent: plugin_token, from caller: Generation, to receiver: Receiver,
        _ thread: ThreadContext, _ record: CallRecord
    ) -> Bool {
        let (event, entries) = (asked.pointee.target, asked.pointee.entries)
        guard asked.pointee.flags == 0, asked.pointee.timeout <= 0, asked.pointee.isNamedEvent,
            caller.isProgram || !event.isOfHost,
            let depth = try? depth(of: event.text, below: parent)
        else { return false }
        let hash = NameTable.hash(event)
        // A local function, because a closure of this size would not be inlined.
        @inline(__always) func post(_ few: UnsafeMutableBufferPointer<Unmanaged<Endpoint>>) -> Bool {
            guard let subscribers = fastSubscribers(of: event, hash, few, thread) else { return false }
            let start = core.profiler.started(thread)
            record.occupy(core.ownActions.posting, parent: parent, depth: depth, caller: .passUnretained(caller))
            let token = record.open(receiver.completion, receiver.data, deadline: 0)
            thread.push()
            let post = Post(
                event: event, entries: entries, caller: .passUnretained(caller), token: token, depth: depth + 1,
                since: record.since, table: subscribers.table)
            var delivery = deliver(post, to: subscribers.endpoints, thread)
            subscribers.retained?.release()
            if let program = subscribers.program { deliver(post, to: program, thread, &delivery) }
            if let start { note(event, from: start) }
            delivery.lend { record.complete(token, $0, $1) }
            record.close(token)  // Only the program might have replied, and it has never received the token.
            record.vacate()
            thread.pop()
            return true
        }
        return withUnsafeTemporaryAllocation(
            of: Unmanaged<Endpoint>.self, capacity: Subscribers.fewAreUpTo, post)
    }

    @inline(never)
    private func note(_ event: plugin_string, from start: Int64) {
        core.profiler.note(.event, event.text, from: start)
    }

    /// The subscribers to an event that a table lists.
    private struct Subscribers {
        let endpoints: UnsafeBufferPointer<Unmanaged<Endpoint>>
        /// The owner of the endpoints; `nil` for a short list, which was copied.
        let retained: Unmanaged<ModuleSubscribers>?
        /// The number of the table.
        let table: UInt64
        let program: Program?

        static let fewAreUpTo = 8

        /// The handlers of the program.
        struct Program {
            let endpoint: Unmanaged<Endpoint>
            /// The only handler, or 0.
            let handler: plugin_object
            /// All of several handlers.
            let retained: Unmanaged<ProgramSubscribers>?
        }
    }

    /// Returns the modules that subscribe to an event, and the program if it does; `nil` if there are interceptors or
    /// some subscribers are asynchronous.
    ///
    /// - Parameter few: The memory to which a short list is copied: endpoints are never freed, but their list is.
    ///   Retaining the list would change a reference count that all threads share.
    @inline(__always)
    private func fastSubscribers(
        of event: plugin_string, _ hash: UInt64, _ few: UnsafeMutableBufferPointer<Unmanaged<Endpoint>>,
        _ thread: ThreadContext
    ) -> Subscribers? {
        registry.read(thread) { table in
            guard table.interception == nil else { return nil }
            var program: Subscribers.Program?
            if let found = core.events.program(for: event, hash: hash) {
                guard Self.enter(found, &program) else { return nil }
            }
            guard let found = table.subscribers(of: event, hash: hash) else {
                return Subscribers(
                    endpoints: .init(start: nil, count: 0), retained: nil, table: table.number, program: program)
            }
            return found._withUnsafeGuaranteedRef { subscribers in
                let endpoints = subscribers.endpoints
                guard subscribers.areSynchronous else {
                    program?.retained?.release()
                    return nil
                }
                guard endpoints.count <= few.count else {
                    return Subscribers(
                        endpoints: endpoints, retained: found.retain(), table: table.number, program: program)
                }
                for index in endpoints.indices { few.initializeElement(at: index, to: endpoints[index]) }
                return Subscribers(
                    endpoints: .init(start: few.baseAddress, count: endpoints.count), retained: nil,
                    table: table.number, program: program)
            }
        }
    }

    /// Notes the program's handlers. Returns false if some are asynchronous.
    @inline(never)
    private static func enter(
        _ found: Unmanaged<ProgramSubscribers>, _ program: inout Subscribers.Program?
    ) -> Bool {
        found._withUnsafeGuaranteedRef { subscribers in
            let handlers = subscribers.handlers
            if handlers.isEmpty { return true }
            guard let endpoint = subscribers.synchronous else { return false }
            program = Subscribers.Program(
                endpoint: .passUnretained(endpoint), handler: handlers.count == 1 ? handlers[0].object : 0,
                retained: handlers.count == 1 ? nil : found.retain())
            return true
        }
    }

    /// Calls the subscribers, one after the other.
    @inline(__always)
    private func deliver(
        _ post: Post, to subscribers: UnsafeBufferPointer<Unmanaged<Endpoint>>, _ thread: ThreadContext
    ) -> EventDelivery {
        var delivery = EventDelivery()
        var failure: PluginError?
        withUnsafeMutablePointer(to: &failure) { failure in
            let receiver = Receiver(Self.noteFailure, failure)
            for (index, subscriber) in subscribers.enumerated() {
                let since = index == 0 ? post.since : plugin_host_coarse_now()
                guard let reached = reach(subscriber, post, since, receiver, thread) else { continue }
                delivery.delivered += 1
                guard failure.pointee != nil, let error = failure.pointee.take() else { continue }
                note(error, of: post, in: reached.takeUnretainedValue(), &delivery)
                if delivery.isAtLimit { break }
            }
        }
        return delivery
    }

    /// Calls the handlers of the program, one after the other, with the same parameters.
    @inline(never)
    private func deliver(
        _ post: Post, to program: Subscribers.Program, _ thread: ThreadContext, _ delivery: inout EventDelivery
    ) {
        defer { program.retained?.release() }
        guard !delivery.isAtLimit else { return }
        let number = program.endpoint._withUnsafeGuaranteedRef { $0.number }
        thread.withParameters(post.entries, keptAs: number, host: self.program.hostTable) { parameters in
            guard let several = program.retained else {
                return deliver(post, parameters, to: program.handler, program.endpoint, thread, &delivery)
            }
            for handler in several.takeUnretainedValue().handlers where !delivery.isAtLimit {
                deliver(post, parameters, to: handler.object, program.endpoint, thread, &delivery)
            }
        }
    }

    /// Calls a handler of the program, if it still exists.
    @inline(__always)
    private func deliver(
        _ post: Post, _ parameters: [String: Value], to handler: plugin_object, _ endpoint: Unmanaged<Endpoint>,
        _ thread: ThreadContext, _ delivery: inout EventDelivery
    ) {
        ObjectTable.lend(handler) { instance in
            delivery.delivered += 1
            endpoint._withUnsafeGuaranteedRef { endpoint in
                run(handler, instance, endpoint, parameters, post, thread) { thrown in
                    if let thrown { note(thrown, of: post, in: endpoint, &delivery) }
                }
            }
        }
    }

    private static var noteFailure: plugin_completion {
        { failure, _, error in
            if let error { failure!.assumingMemoryBound(to: PluginError?.self).pointee = PluginError(error.pointee) }
        }
    }

    /// Records the error of the subscriber that was called last.
    @inline(never)
    private func note(
        _ error: PluginError, of post: Post, in endpoint: Endpoint, _ delivery: inout EventDelivery
    ) {
        delivery.note(
            report(error, of: post.event.text, in: endpoint, post.token, post.caller), at: delivery.delivered)
    }
}
