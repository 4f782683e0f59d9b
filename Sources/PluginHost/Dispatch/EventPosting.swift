import CPluginABI
import CPluginHost
public import PluginABI
import Synchronization

// An event is a call of its own, with a record and a token, whose nested calls are those of the subscribers.

extension Dispatcher {
    /// An event: everybody who subscribes to it.
    func post(
        _ request: borrowing plugin_request, _ call: Call, from caller: Generation
    ) throws(PluginError) -> plugin_token {
        let event = request.target.text
        let entries = UnsafeBufferPointer(start: request.parameters, count: Int(request.parameter_count))
        guard !event.isEmpty else { throw PluginError(.invalidValue, "An event needs a name.") }
        if call.isRemote {
            throw PluginError(.notRemote, "The event “\(event.shortened)” cannot be posted by other programs.")
        }
        if !caller.isProgram, ["host.", "module.", "configuration."].contains(where: event.hasPrefix) {
            throw PluginError(
                .refused,
                "“\(event.shortened)” is a name for events of the host. Post “\(caller.name).…” instead.")
        }
        guard entries.allSatisfy({ $0.key.count > 0 }) else {
            throw PluginError(
                .invalidValue, "The event “\(event.shortened)” has a parameter without a name; subscribers go by names."
            )
        }
        if request.flags & PLUGIN_REQUEST_STICKY != 0 {
            let copies = entries.map { ($0.key.text, Value(copying: $0.value, host: program.hostTable)) }
            events.keep(event, Parameters(copies))
        }
        return try deliver(event, entries, to: subscribers(of: event), call)
    }

    /// Modules in their order, then the program.
    private func subscribers(of event: String) -> [Subscriber] {
        registry.table.subscribers(of: event).map(Subscriber.module)
            + events.handlers(of: event).map(Subscriber.program)
    }

    /// Tells subscribers one after the other, and the receiver of the call when all have ended; in mode `.synchronous`
    /// without waiting for the asynchronous ones.
    func deliver(
        _ event: String, _ entries: UnsafeBufferPointer<plugin_entry>, to subscribers: [Subscriber], _ call: Call
    ) throws(PluginError) -> plugin_token {
        let depth = try depth(of: event, below: call.parent)
        guard let record = RecordPool.take() else {
            throw PluginError(.recursionLimit, "More than eight million asynchronous calls are in flight.")
        }
        record.occupy(.passUnretained(posting), label: posting.label, parent: call.parent, depth: depth)
        record.hold()
        let deadline = deadline(in: call.timeout)
        let token = record.open(call.receiver.completion, call.receiver.data, deadline: deadline)
        let posting = Posting(event, token, self)
        for subscriber in subscribers where !posting.isBroken {
            switch subscriber {
            case .module(let endpoint): deliver(entries, to: endpoint, posting, call.mode)
            case .program(let handler): deliver(entries, to: handler, posting, call.mode)
            }
        }
        posting.endDelivery(waits: call.mode == .any)
        let isOver = record.phase(of: token) == .over
        if !isOver, deadline != 0 { Deadlines.note(deadline) }
        release(record, self.posting, leavesGate: true)
        return isOver ? 0 : token
    }

    /// The depth of a post within the calls that led to it.
    ///
    /// - Throws: `recursionLimit`, also when handlers of the event post it again and again: with several of them the
    ///   number of calls would double at each step, long before the calls are nested too deeply.
    private func depth(of event: String, below parent: plugin_token) throws(PluginError) -> UInt32 {
        var depth: UInt32 = 1
        var repetitions = 0
        let name = "!" + event
        var token = parent
        while token != 0, let record = CallRecord(token: token) {
            let (endpoint, next, above) = (record.endpoint, record.parent, record.depth)
            guard record.phase(of: token) != .over else { break }
            if token == parent { depth = above + 1 }
            if endpoint?.name == name { repetitions += 1 }
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

    private func deliver(
        _ entries: UnsafeBufferPointer<plugin_entry>, to endpoint: Endpoint, _ posting: Posting, _ mode: Mode
    ) {
        let declared = entries.filter { entry in endpoint.parameters.contains { $0.key == entry.key } }
        declared.withUnsafeBufferPointer { declared in
            posting.deliver(to: endpoint, mode) { call in
                self.call(endpoint, declared, call) { lane, record in
                    // Who has gone since the subscribers were listed gets nothing any more.
                    registry.read(lane) { table in
                        guard table.generations.contains(where: { $0 === endpoint.generation }) else { return false }
                        occupy(record, .passUnretained(endpoint), call)
                        return true
                    }
                }
            }
        }
    }

    private func deliver(
        _ entries: UnsafeBufferPointer<plugin_entry>, to handler: plugin_object, _ posting: Posting, _ mode: Mode
    ) {
        guard ObjectTable.retain(handler) else { return }
        let (type, instance) = ObjectTable.contents(of: handler)
        let endpoint = type.actions["handle"]!  // Handlers have no other type.
        var argument = plugin_entry()
        argument.value = plugin_value_map(entries.baseAddress, UInt32(entries.count))
        withUnsafePointer(to: argument) { argument in
            posting.deliver(to: endpoint, mode) { call in
                self.call(endpoint, UnsafeBufferPointer(start: argument, count: 1), call, instance: instance) {
                    _, record in
                    occupy(record, .passUnretained(endpoint), call)
                    record.pointer.pointee.object = handler
                    return true
                }
            }
        }
    }
}

/// An event on its way to its subscribers.
final class Posting: Sendable {
    private let event: String
    private let token: plugin_token
    private let dispatcher: Dispatcher
    private let start = monotonicNow()
    private let state = Mutex(State())

    private struct State {
        /// The subscribers that have not ended, and the delivery itself.
        var pending = 1
        var delivered = 0
        var failures: [(place: Int, error: PluginError)] = []
        /// Calls are nested too deeply: nobody else gets the event.
        var limit: PluginError?
        var isAnswered = false
    }

    init(_ event: String, _ token: plugin_token, _ dispatcher: Dispatcher) {
        (self.event, self.token, self.dispatcher) = (event, token, dispatcher)
    }

    var isBroken: Bool { state.withLock { $0.limit != nil } }

    /// Calls one subscriber.
    ///
    /// - Parameter body: Makes the call, and returns whether it could be made.
    func deliver(to endpoint: Endpoint, _ mode: Dispatcher.Mode, _ body: (Dispatcher.Call) -> Bool) {
        let place = state.withLock { state in
            state.pending += 1
            state.delivered += 1
            return state.delivered
        }
        let delivery = Unmanaged.passRetained(Delivery(self, endpoint, place))
        let call = Dispatcher.Call(
            parent: token, timeout: 0, isRemote: false, mode: endpoint.isAsync ? .any : mode,
            receiver: Dispatcher.Receiver(completion: Delivery.completion, data: delivery.toOpaque()))
        guard !body(call) else { return }
        delivery.release()
        state.withLock { state in
            state.pending -= 1
            state.delivered -= 1
        }
    }

    private final class Delivery {
        let posting: Posting
        let endpoint: Endpoint
        let place: Int

        init(_ posting: Posting, _ endpoint: Endpoint, _ place: Int) {
            (self.posting, self.endpoint, self.place) = (posting, endpoint, place)
        }

        static let completion: plugin_completion = { data, _, error in
            let delivery = Unmanaged<Delivery>.fromOpaque(data!).takeRetainedValue()
            delivery.posting.end(delivery, error.map { PluginError($0.pointee) })
        }
    }

    private func end(_ delivery: Delivery, _ error: PluginError?) {
        var error = error
        if error != nil, error?.source == nil { error?.source = delivery.endpoint.generation.sourceName }
        if let error { report(error, delivery.endpoint) }
        let isLast = state.withLock { state in
            if let error { state.failures.append((delivery.place, error)) }
            if let error, error.code == .recursionLimit { state.limit = error }
            state.pending -= 1
            return state.pending == 0
        }
        if isLast { answer() }
    }

    private func report(_ error: PluginError, _ endpoint: Endpoint) {
        let name = endpoint.generation.sourceName
        dispatcher.settings.log(
            LogEntry(
                level: .error, module: name,
                message: "The event “\(event)” failed in \(name ?? "the program"): \(error.message) (\(error.code))"))
    }

    /// Notes that all subscribers have been called, and answers when they have ended, or at once.
    func endDelivery(waits: Bool) {
        let isLast = state.withLock { state in
            state.pending -= 1
            return state.pending == 0
        }
        if isLast || !waits { answer() }
    }

    private func answer() {
        let outcome: (value: Value, limit: PluginError?)? = state.withLock { state in
            if state.isAnswered { return nil }
            state.isAnswered = true
            let failures = state.failures.sorted { $0.place < $1.place }.map(\.error)
            return (EventOutcome(delivered: state.delivered, failures: failures).value, state.limit)
        }
        guard let outcome else { return }
        dispatcher.profiler.note(.event, event, from: start)
        if let limit = outcome.limit {
            return limit.lend { _ = dispatcher.reject(token, $0.pointee, from: dispatcher.program) }
        }
        let value = plugin_value.lend(outcome.value)
        withExtendedLifetime(value.owner) {
            withUnsafePointer(to: value.raw) { _ = dispatcher.resolve(token, $0, from: dispatcher.program) }
        }
    }
}

extension plugin_value {
    /// A value in the form in which it crosses the border, for as long as its owner lives.
    fileprivate static func lend(_ value: Value) -> (raw: plugin_value, owner: Parameters) {
        let owner = Parameters(positional: [value])
        let raw = try? owner.withEntries { entries, count in count > 0 ? entries[0].value : plugin_value_null() }
        return (raw ?? plugin_value_null(), owner)
    }
}

// MARK: The program

extension PluginHost {
    /// Posts an event to everybody who subscribes to it: modules in the order of their level, priority and name, then
    /// the program. Asynchronous subscribers are started; nobody waits for their end.
    ///
    /// - Parameters:
    ///   - event: A name, such as `shop.sold`.
    ///   - parameters: By name. What a subscriber does not declare is left out for it.
    ///   - sticky: Modules that come later get the event, too, after their `didStart`, and so does the program when it
    ///     subscribes; a later one replaces it.
    /// - Returns: How many got it, and which failed; a failure is also logged, and stops nobody else.
    /// - Throws: ``/PluginABI/PluginError/Code/recursionLimit`` for an event that is posted from inside its own handler
    ///   again and again.
    @discardableResult
    public func post(
        _ event: String, _ parameters: Parameters = [:], sticky: Bool = false
    ) throws(PluginError) -> EventOutcome {
        try program.post(event, parameters, sticky: sticky)
    }

    /// Posts an event, and waits until the asynchronous subscribers have ended, too. See ``post(_:_:sticky:)``.
    ///
    /// - Parameters:
    ///   - event: A name, such as `shop.sold`.
    ///   - parameters: By name. What a subscriber does not declare is left out for it.
    ///   - sticky: Modules that come later get the event, too.
    ///   - timeout: How long to wait at most. Default: as long as a subscriber may take.
    /// - Returns: How many got it, and which failed.
    /// - Throws: As the synchronous form; ``/PluginABI/PluginError/Code/deadlineExceeded``.
    @discardableResult
    public func post(
        _ event: String, _ parameters: Parameters = [:], sticky: Bool = false, timeout: Duration? = nil
    ) async throws(PluginError) -> EventOutcome {
        try await program.post(event, parameters, sticky: sticky, timeout: timeout)
    }

    /// Subscribes the program to an event; a sticky one that was posted before comes at once.
    ///
    /// - Parameters:
    ///   - event: Its name.
    ///   - handler: Gets all parameters. Runs on the thread that posts, also concurrently. What it throws is logged,
    ///     and the poster is told.
    /// - Returns: The subscription; it ends when it is cancelled or dropped.
    public func on(
        _ event: String, _ handler: @escaping @Sendable (_ parameters: [String: Value]) throws -> Void
    ) -> Subscription {
        subscribe(event, isAsync: false) { parameters, completion in
            do {
                try handler(parameters)
                completion(nil)
            } catch {
                completion(PluginError(thrown: error))
            }
        }
    }

    /// Subscribes the program to an event with an asynchronous handler.
    public func on(
        _ event: String, _ handler: @escaping @Sendable (_ parameters: [String: Value]) async throws -> Void
    ) -> Subscription {
        subscribe(event, isAsync: true) { parameters, completion in
            Task {
                do {
                    try await handler(parameters)
                    completion(nil)
                } catch {
                    completion(PluginError(thrown: error))
                }
            }
        }
    }

    private func subscribe(
        _ event: String, isAsync: Bool,
        _ run: @escaping @Sendable ([String: Value], @escaping EventHandlerBox.Completion) -> Void
    ) -> Subscription {
        let program = dispatcher.program!
        let type = dispatcher.events.type(of: event, isAsync: isAsync) {
            EventHandlerBox.type(for: event, in: program, isAsync: isAsync)
        }
        let handler = EventHandlerBox(program, run).object(of: type)
        let subscription = Subscription(handler, to: event, on: dispatcher.events)
        lifecycle.withLock { $0 }?.watchMemoryIfAwaited()
        dispatcher.deliverSticky(dispatcher.events.sticky.filter { $0.name == event }) { _ in .program(handler) }
        return subscription
    }
}

extension Dispatcher {
    /// Delivers sticky events to somebody who has come later.
    func deliverSticky(_ sticky: [EventBoard.StickyEvent], to subscriber: (_ event: String) -> Subscriber?) {
        for event in sticky {
            guard let subscriber = subscriber(event.name) else { continue }
            let receiver = Receiver(completion: { _, _, _ in }, data: nil)
            let parent = Lane.current?.currentCall ?? 0
            let call = Call(parent: parent, timeout: 0, isRemote: false, mode: .synchronous, receiver: receiver)
            do throws(PluginError) {
                try event.parameters.withEntries { (entries, count) throws(PluginError) in
                    let entries = UnsafeBufferPointer(start: entries, count: count)
                    _ = try deliver(event.name, entries, to: [subscriber], call)
                }
            } catch {
                settings.log(LogEntry(level: .error, message: "The event “\(event.name)” failed: \(error.message)"))
            }
        }
    }

    /// Posts an event of the host's. Asynchronous subscribers are awaited where a timeout is given.
    func postHostEvent(_ event: String, _ parameters: [String: Value] = [:], waitingAtMost timeout: Duration? = nil) {
        guard hasSubscribers(event) else { return }
        let outcome = AwaitedOutcome()
        let call = Call(
            parent: Lane.current?.currentCall ?? 0, timeout: timeout?.nanoseconds ?? 0, isRemote: false,
            mode: timeout == nil ? .synchronous : .any, receiver: outcome.receiver())
        do throws(PluginError) {
            try Parameters(parameters).withEntries { (entries, count) throws(PluginError) in
                let entries = UnsafeBufferPointer(start: entries, count: count)
                _ = try deliver(event, entries, to: subscribers(of: event), call)
            }
        } catch {
            call.receiver.receive(error)
        }
        do throws(PluginError) { try outcome.wait() } catch {
            settings.log(LogEntry(level: .warning, message: "The event “\(event)” failed: \(error.message)"))
        }
    }

    func hasSubscribers(_ event: String) -> Bool {
        !events.handlers(of: event).isEmpty || !registry.table.subscribers(of: event).isEmpty
    }
}
