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
    let destination: KnownDestination
    /// The events by which the call is answered; `nil` if it is answered by its result alone.
    let events: CallEvents?

    init(
        _ url: String, _ method: RouteMethod, _ parameters: CallParameters, _ client: Client, timeout: Duration,
        _ destination: KnownDestination, _ events: CallEvents?
    ) {
        (self.url, self.method, self.parameters, self.client) = (url, method, parameters, client)
        (self.timeout, self.destination, self.events) = (timeout, destination, events)
    }
}

extension PluginGateway {
    /// `POST /call/{target}/{action}`.
    func call(
        _ target: RequestTarget, _ request: ReceivedRequest, _ client: Client, _ connection: Connection?
    ) async throws(Problem) -> Response {
        let title = String(target.path.utf8.dropFirst("/call/".utf8.count)) ?? ""
        guard let slash = title.utf8.firstIndex(of: UInt8(ascii: "/")), isName(title[..<slash]),
            isName(title[title.utf8.index(after: slash)...])
        else { throw Problem(.noRoute, "There is nothing at this path. An action is at /call/{target}/{action}.") }
        guard request.method == .post else { throw Problem.method(request.method, allowed: "POST") }
        try checkReady()
        let url = "\(scheme)://\(title)"
        let destination = try self.destination(of: url, title)
        let timeout = try timeout(of: request)
        let (parameters, events) = try await given(request, target, destination.declaration)
        let call = GatewayCall(
            target.query.isEmpty ? url : url + target.query, .post, parameters, client, timeout: timeout, destination,
            events)
        return try await make(call, request, connection)
    }

    /// Returns the parameters that a client gives for a call, and the events by which the call is answered; `nil` if it
    /// is answered by its result alone.
    func given(
        _ request: ReceivedRequest, _ target: RequestTarget, _ action: Catalog.KnownAction?
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

    /// Finds the action that a URL names, or the fallback that is the only action of its target. Routes, and other
    /// fallbacks, precede names.
    private func destination(of url: String, _ action: String) throws(Problem) -> KnownDestination {
        let catalog = catalog.current
        guard let found = try? catalog.destination(of: url, .post, self), found.route == nil,
            found.fallback == nil
                ? found.action == action
                : found.fallback == "notFound" && catalog.hasOnlyFallback(String(action.prefix { $0 != "/" }))
        else { throw Problem(.noRoute, "There is no remote action “\(action)”.") }
        return found
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

    /// Makes a call when its body has been read, and answers with its result, or with events.
    func make(
        _ call: GatewayCall, _ request: ReceivedRequest, _ connection: Connection?
    ) async throws(Problem) -> Response {
        do throws(Problem) {
            if let events = call.events { return try await stream(call, events, request, connection) }
            return try await measured(call, request) { context throws(Problem) in
                let running = try start(call, connection)
                return try await self.response(try await running.open(context), running)
            }
        } catch {
            throw error.afterBody
        }
    }

    /// Finds a slot for a call.
    func start(_ call: GatewayCall, _ connection: Connection?) throws(Problem) -> RunningCall {
        RunningCall(self, call, try admission.enter(call.destination.counted.share), connection)
    }

    /// Makes a call in a span, and counts it.
    func measured<Result: Sendable>(
        _ call: GatewayCall, _ request: ReceivedRequest, _ body: (CallContext) async throws(Problem) -> Result
    ) async throws(Problem) -> Result {
        let start = ContinuousClock.now
        let number = call.destination.counted.begin(start)
        do throws(Problem) {
            let result =
                isTraced
                ? try await traced(call, request, body)
                : try await body(CallContext(trace: TraceContext(request), caller: call.client.name))
            call.destination.counted.end(number, nil, since: start)
            return result
        } catch {
            call.destination.counted.end(number, error, since: start)
            throw error
        }
    }
}

extension HTTPRequest.Method {
    /// Whether requests of this method can have a body.
    var hasBody: Bool { self == .post || self == .put || self == .patch }
}
