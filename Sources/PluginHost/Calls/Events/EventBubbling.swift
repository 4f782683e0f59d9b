import PluginABI

/// One event that bubbles up the chain.
///
/// It is a call of its own, with a record and a token; the handlers are called as part of it, over the normal call
/// path. A handler that fails does not lose the event: the next one receives it unchanged.
struct EventBubbling: Sendable {
    private let event: String
    private var parameters: [String: Value]
    private var failures: [PluginError] = []
    private let calls: Calls
    /// The context of the program within the call of this event.
    private let context: HostContext
    private var handled: (by: String, result: Value)?

    // MARK: The endpoint

    /// Creates the endpoint that emits an event. Its arguments: the origin or null, the name of the module, the event,
    /// and the event's parameters.
    static func endpoint(of program: Generation, isAsync: Bool) -> Endpoint {
        Endpoint(
            own: "an event along the chain", of: program, isAsync: isAsync, invoke: isAsync ? invokeLater : invokeNow)
    }

    private static let invokeNow: plugin_invoke = { data, call, arguments, _ in
        let program = Unmanaged<Generation>.fromOpaque(data!).takeUnretainedValue()
        var emission = EventBubbling(arguments!, program, call!.pointee.token)
        for link in ChainLinks(arguments!, program) where emission.ask(link) { break }
        emission.resolve()
    }

    private static let invokeLater: plugin_invoke = { data, call, arguments, _ in
        let program = Unmanaged<Generation>.fromOpaque(data!).takeUnretainedValue()
        let begun = EventBubbling(arguments!, program, call!.pointee.token)
        let links = ChainLinks(arguments!, program)
        let task = Task<Void, any Error>.immediate {  // Nothing in it throws; otherwise it would never reply.
            var emission = begun
            for link in links {
                if Task.isCancelled { break }  // The caller no longer waits.
                if await emission.askLater(link) { break }
            }
            emission.resolve()
        }
        TaskReply(host: program.hostTable, call: call!.pointee.token).comes(from: task)
    }

    private init(_ arguments: UnsafePointer<plugin_value>, _ program: Generation, _ token: plugin_token) {
        let host = program.hostTable!
        event = Value(copying: arguments[2], host: host).string ?? ""
        parameters = Value(copying: arguments[3], host: host).map ?? [:]
        calls = program.calls
        context = HostContext(host: host, call: token)
    }

    private func resolve() {
        let outcome = ChainOutcome(
            isHandled: handled != nil, handler: handled?.by, result: handled?.result ?? .null, parameters: parameters,
            failures: failures)
        do throws(PluginError) {
            try outcome.value.lend { value in withUnsafePointer(to: value) { calls.answer(context.call, $0) } }
        } catch {
            calls.answer(context.call, error)
        }
    }

    // MARK: Calling handlers

    /// Calls a handler. Returns true if it has handled the event.
    private mutating func ask(_ link: ChainLink) -> Bool {
        do {
            let reply =
                switch link {
                case .object(let object, let action, let endpoint):
                    try ChainReply(
                        object.perform(action, accepted(by: endpoint), in: context))
                case .module(let target, let action, let endpoint):
                    try ChainReply(context.perform(target, action, accepted(by: endpoint)))
                case .program(.synchronous(let body)): try body(own)
                case .program(.asynchronous):
                    throw PluginError(
                        .asynchronousAction,
                        "The program's handler of “\(event.shortened)” is asynchronous: use await emit(…).")
                }
            return try take(reply, from: link)
        } catch {
            fail(error, link)
            return false
        }
    }

    /// The event in the form for the program's handlers.
    private var own: ChainEvent { ChainEvent(name: event, parameters: parameters, context: context) }

    /// Calls a handler and waits for it. Returns true if it has handled the event.
    private mutating func askLater(_ link: ChainLink) async -> Bool {
        do {
            let reply =
                switch link {
                case .object(let object, let action, let endpoint):
                    try ChainReply(
                        await object.call(action, accepted(by: endpoint), in: context))
                case .module(let target, let action, let endpoint):
                    try ChainReply(await context.call(target, action, accepted(by: endpoint)))
                case .program(.synchronous(let body)): try body(own)
                case .program(.asynchronous(let body)): try await body(own)
                }
            return try take(reply, from: link)
        } catch {
            fail(error, link)
            return false
        }
    }

    /// Returns the parameters that a handler declares, and, if it has a rest, the others.
    private func accepted(by endpoint: Endpoint) -> Parameters {
        var given = endpoint.parameters.compactMap { parameter -> (String, Value)? in
            switch ReservedName(rawValue: parameter.name) {
            case .event: (parameter.name, .string(event))
            case .parameters: (parameter.name, .map(parameters))
            default: parameters[parameter.name].map { (parameter.name, $0) }
            }
        }
        if endpoint.hasRest {
            let declared = Set(endpoint.parameters.map(\.name))
            for (name, value) in parameters where !declared.contains(name) && !name.isEmpty {
                if ReservedName(rawValue: name) == nil { given.append((name, value)) }
            }
        }
        return Parameters(given)
    }

    /// - Throws: The error of a handler that replies that it has failed.
    private mutating func take(_ reply: ChainReply, from link: ChainLink) throws(PluginError) -> Bool {
        switch reply {
        case .handled(let result):
            handled = (link.title, result)
            return true
        case .passedOn(let changed):
            if let changed { parameters = changed }
            return false
        case .failed(let error): throw error
        }
    }

    private mutating func fail(_ error: any Error, _ link: ChainLink) {
        var error = PluginError(thrown: error)
        if error.source == nil { error.source = link.module }
        failures.append(error)
        calls.settings.log(
            LogEntry(
                level: .error, module: link.module,
                message: "\(link.title) failed to handle the event “\(event.shortened)”: \(error.message) "
                    + "(\(error.code))"))
    }
}

// MARK: The resolver

extension Calls {
    /// Emits an event up the chain.
    func emit(
        _ request: borrowing plugin_request, _ call: Call, from caller: Generation, _ thread: ThreadContext,
        _ record: CallRecord
    ) throws(PluginError) -> plugin_token {
        let (name, entries) = try request.namedEvent()
        let event = name.text
        try checkNesting(of: event, below: call.parent)
        let handle = request.object != 0 ? request.object : CallRecord.object(of: call.parent)
        guard handle == 0 || ObjectTable.retain(handle) else {
            throw PluginError(
                .unknownObject,
                "The object that should emit “\(event.shortened)” is gone: its last holder has released it."
            )
        }
        defer { if handle != 0 { _ = ObjectTable.release(handle) } }
        let host = program.hostTable!
        let module = handle != 0 ? ObjectTable.contents(of: handle).0.generation.name : caller.name
        let given = entries.lazy.map { ($0.key.text, Value(copying: $0.value, host: host)) }
        let parameters = Parameters(positional: [
            handle != 0 ? .object(Object(retaining: handle, host: host)) : .null, .string(module), .string(event),
            .map(Dictionary(given, uniquingKeysWith: { first, _ in first })),
        ])
        let endpoint = call.mode == .any ? core.ownActions.emission.asynchronous : core.ownActions.emission.synchronous
        occupy(record, .passUnretained(endpoint), call)
        return try parameters.lend { (entries) throws(PluginError) in
            try invoke(endpoint, entries, call, thread, record)
        }
    }

    /// - Throws: `recursionLimit` if handlers keep emitting events whose handlers emit events. If each handler emits
    ///   two, the number of calls doubles at each level, and becomes too large long before the calls are nested too
    ///   deeply.
    private func checkNesting(of event: String, below parent: plugin_token) throws(PluginError) {
        let emission = core.ownActions.emission
        let count = CallChain(from: parent).count { call in
            call.endpoint === emission.synchronous || call.endpoint === emission.asynchronous
        }
        guard count < Self.nestedBubblingMax else {
            throw PluginError(
                .recursionLimit,
                "The event “\(event.shortened)” is emitted within \(count) nested handlers of events. A handler that "
                    + "cannot handle an event must pass it on instead.")
        }
    }

    private static var nestedBubblingMax: Int { 12 }
}
