import CPluginABI
import PluginABI

/// One event on its way up the chain.
///
/// It is a call of its own, with a record and a token; the handlers are calls that are made for it, over the same path as
/// any. One that fails does not lose the event: the next one gets it as the one that failed did.
struct EventBubbling: Sendable {
    private let event: String
    private var parameters: [String: Value]
    private var failures: [PluginError] = []
    private let calls: Calls
    /// The program, on behalf of the call of this event.
    private let context: HostContext
    private var handled: (by: String, result: Value)?

    // MARK: The endpoint

    /// What emits, as the call path sees it. Its arguments: the origin or null, the name of the module, the event, its
    /// parameters.
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
        let task = Task<Void, any Error>.immediate {  // Nothing in it throws: it would never reply.
            var emission = begun
            for link in links {
                if Task.isCancelled { break }  // Nobody waits any longer.
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

    // MARK: Asking

    /// Asks one; true when it has handled the event.
    private mutating func ask(_ link: ChainLink) -> Bool {
        do {
            let reply =
                switch link {
                case .object(let object, let endpoint):
                    try ChainReply(
                        object.perform(handlerName(event), declared(by: endpoint), in: context))
                case .module(let target, let endpoint):
                    try ChainReply(context.perform(target, handlerName(event), declared(by: endpoint)))
                case .program(.synchronous(let body)): try body(own)
                case .program(.asynchronous):
                    throw PluginError(
                        .asynchronousAction,
                        "The program's handler of “\(event.shortened)” is asynchronous: await emit(…) to ask it.")
                }
            return take(reply, from: link)
        } catch {
            fail(error, link)
            return false
        }
    }

    /// The event as the program's handlers get it.
    private var own: ChainEvent { ChainEvent(name: event, parameters: parameters, context: context) }

    /// Asks one, and waits for it; true when it has handled the event.
    private mutating func askLater(_ link: ChainLink) async -> Bool {
        do {
            let reply =
                switch link {
                case .object(let object, let endpoint):
                    try ChainReply(
                        await object.call(handlerName(event), declared(by: endpoint), in: context))
                case .module(let target, let endpoint):
                    try ChainReply(await context.call(target, handlerName(event), declared(by: endpoint)))
                case .program(.synchronous(let body)): try body(own)
                case .program(.asynchronous(let body)): try await body(own)
                }
            return take(reply, from: link)
        } catch {
            fail(error, link)
            return false
        }
    }

    /// The parameters that a handler declares.
    private func declared(by endpoint: Endpoint) -> Parameters {
        let given = endpoint.parameters.compactMap { parameter -> (String, Value)? in
            switch parameter.name {
            case "_event": ("_event", .string(event))
            case "_parameters": ("_parameters", .map(parameters))
            default: parameters[parameter.name].map { (parameter.name, $0) }
            }
        }
        return Parameters(given)
    }

    private mutating func take(_ reply: ChainReply, from link: ChainLink) -> Bool {
        switch reply {
        case .handled(let result):
            handled = (link.title, result)
            return true
        case .passedOn(let changed):
            if let changed { parameters = changed }
            return false
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
    /// An event that runs up the chain.
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
                "The object from which “\(event.shortened)” was to go up the chain is gone: its last holder has "
                    + "released it."
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

    /// - Throws: `recursionLimit`, when handlers emit events whose handlers emit events, again and again: where each one
    ///   emits two, the calls would double at each step, long before they are nested too deeply.
    private func checkNesting(of event: String, below parent: plugin_token) throws(PluginError) {
        let emission = core.ownActions.emission
        let count = CallChain(from: parent).count { call in
            call.endpoint === emission.synchronous || call.endpoint === emission.asynchronous
        }
        guard count < Self.nestedBubblingMax else {
            throw PluginError(
                .recursionLimit,
                "The event “\(event.shortened)” is emitted inside handlers of events, \(count) of them within "
                    + "each other. "
                    + "A handler that cannot deal with an event passes it on instead.")
        }
    }

    private static var nestedBubblingMax: Int { 12 }
}
