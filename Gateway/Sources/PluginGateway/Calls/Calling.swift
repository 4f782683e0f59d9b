import HTTPTypes
import Hummingbird
import PluginABI
import PluginHost

/// The parameters of a call; those of a path in Hummingbird have the same name.
typealias CallParameters = PluginABI.Parameters

/// One call, ready to be made.
final class GatewayCall: Sendable {
    let url: String
    let method: RouteMethod
    let parameters: CallParameters
    let client: Client
    let timeout: Duration
    /// The module and the action that the URL leads to; `nil` if it leads to none.
    let module: String?
    let action: String?
    /// What counts the calls of the action.
    let counted: CountedAction
    /// Whether the action can run on the threads that all tasks of the program share, as long as its calls are short.
    let mayShareThreads: Bool
    /// The events by which the call is answered; `nil` if it is answered by its result alone.
    let events: CallEvents?

    /// - Parameter known: The declaration of the action; `nil` if it is not known.
    init(
        _ url: String, _ method: RouteMethod, _ parameters: CallParameters, _ client: Client, timeout: Duration,
        module: String?, action: String?, counted: CountedAction, known: Catalog.KnownAction?, events: CallEvents?
    ) {
        (self.url, self.method, self.parameters, self.client) = (url, method, parameters, client)
        (self.timeout, self.module, self.action) = (timeout, module, action)
        (self.counted, self.events) = (counted, events)
        mayShareThreads = known?.mayShareThreads ?? false
    }
}

extension PluginGateway {
    /// `POST /call/{target}/{action}`.
    func call(
        _ target: RequestTarget, _ request: Request, _ client: Client, _ connection: Connection?
    ) async throws(Problem) -> Response {
        let title = String(target.path.utf8.dropFirst("/call/".utf8.count)) ?? ""
        guard let slash = title.utf8.firstIndex(of: UInt8(ascii: "/")), isName(title[..<slash]),
            isName(title[title.utf8.index(after: slash)...])
        else { throw Problem(.noRoute, "There is nothing at this path. An action is at /call/{target}/{action}.") }
        guard request.method == .post else { throw Problem.method(request.method, allowed: "POST") }
        try checkReady()
        let name = String(title[..<slash])
        let url = "\(scheme)://\(title)"
        let catalog = catalog.current
        let fallback = catalog.fallback(of: name)
        try checkAction(url, title, orFallback: fallback != nil)
        let known = catalog.action(title)
        let timeout = try timeout(of: request)
        let (parameters, events) = try await given(request, target, known)
        let (module, called) = (known?.module ?? fallback?.name, fallback == nil ? title : "\(name)/notFound")
        let call = GatewayCall(
            target.query.isEmpty ? url : url + target.query, .post, parameters, client, timeout: timeout,
            module: module, action: called, counted: countedActions.of(module, called, self), known: known,
            events: events)
        return try await makeAfterBody(call, request, connection)
    }

    /// Returns the parameters that a client gives for a call, and the events by which the call is answered; `nil` if it
    /// is answered by its result alone.
    func given(
        _ request: Request, _ target: RequestTarget, _ action: Catalog.KnownAction?
    ) async throws(Problem) -> (CallParameters, CallEvents?) {
        let accepted = AcceptedTypes(request)
        let prefersEvents = accepted.prefersEvents && request.method != .head
        let isPossible = action?.action.hasCallback == true && accepted.acceptsEvents && request.method != .head
        let events =
            prefersEvents || isPossible
            ? CallEvents(limit: configuration.callbackBuffer, heartbeat: configuration.heartbeat) : nil
        let maker = events.map { CallbackMaker(host: host, events: $0) }
        var given = GivenParameters.named([:])
        if request.method.hasBody { given = try await parameters(of: request, for: action, maker) }
        given = try onceBodyIsRead { () throws(Problem) in
            try given.adding(callbacksIn: target.query, of: action, maker)
        }
        return (given.parameters, prefersEvents || given.hasCallback ? events : nil)
    }

    /// Refuses a URL that does not lead to the action that it names: routes, and fallbacks of targets, precede names.
    ///
    /// - Parameter isFallback: Whether the only action of the target is a fallback, which may then handle the call.
    private func checkAction(_ url: String, _ action: String, orFallback isFallback: Bool) throws(Problem) {
        let found = host.destination(of: url, method: .post, origin: .remote)
        if isFallback, found.route == nil, found.fallback == "notFound" { return }
        guard found.route == nil, found.fallback == nil, found.action == action else {
            throw Problem(.noRoute, "There is no remote action “\(action)”.")
        }
    }

    /// Whether a text can be the name of a target or an action.
    private func isName(_ text: Substring) -> Bool {
        guard (1...256).contains(text.utf8.count), let first = text.utf8.first,
            !(UInt8(ascii: "0")...UInt8(ascii: "9")).contains(first), first != UInt8(ascii: "."),
            first != UInt8(ascii: "-")
        else { return false }
        return text.utf8.allSatisfy { byte in
            switch byte {
            case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                UInt8(ascii: "0")...UInt8(ascii: "9"):
                true
            case UInt8(ascii: "_"), UInt8(ascii: "."), UInt8(ascii: "-"): true
            default: false
            }
        }
    }

    /// Makes a call and answers with its result, or with events.
    func make(_ call: GatewayCall, _ request: Request, _ connection: Connection?) async throws(Problem) -> Response {
        if let events = call.events { return try await stream(call, events, request, connection) }
        return try await measured(call, request) { context throws(Problem) in
            let running = try start(call, connection)
            return try await self.response(try await running.open(context), running)
        }
    }

    /// Makes a call when its body has been read.
    func makeAfterBody(
        _ call: GatewayCall, _ request: Request, _ connection: Connection?
    ) async throws(Problem) -> Response {
        do throws(Problem) { return try await make(call, request, connection) } catch { throw error.afterBody }
    }

    /// Finds a slot for a call.
    func start(_ call: GatewayCall, _ connection: Connection?) throws(Problem) -> RunningCall {
        RunningCall(self, call, try admission.enter(call.counted.share), connection)
    }

    /// Makes a call in a span, and counts it.
    func measured<Result: Sendable>(
        _ call: GatewayCall, _ request: Request, _ body: (CallContext) async throws(Problem) -> Result
    ) async throws(Problem) -> Result {
        let start = ContinuousClock.now
        let number = call.counted.begin(start)
        do throws(Problem) {
            let result =
                isTraced
                ? try await traced(call, request, body)
                : try await body(CallContext(trace: TraceContext(request), caller: call.client.name))
            call.counted.end(number, nil, since: start)
            return result
        } catch {
            call.counted.end(number, error, since: start)
            throw error
        }
    }
}

extension HTTPRequest.Method {
    /// Whether requests of this method can have a body.
    var hasBody: Bool { [.post, .put, .patch].contains(self) }
}
