import GatewayThreads
import HTTPTypes
public import Hummingbird
public import Logging
import PluginABI
public import PluginHost
import Synchronization
public import Tracing

/// Serves a host over HTTP: calls, routes, events, health, metrics, and a description of all of it.
///
///     let gateway = PluginGateway(host)
///     gateway.mount(in: router)
///
/// The gateway serves as long as its ``PluginHostService`` runs. All functions may be called from any thread.
public final class PluginGateway: Sendable {
    /// The host that is served.
    public let host: PluginHost
    /// The settings that the gateway was made with.
    public let configuration: GatewayConfiguration
    /// The registry that the gateway counts in.
    public let metrics: PrometheusMetrics

    let tracer: any Tracer
    let logger: Logger
    /// The scheme by which the host finds targets and actions by their names.
    let scheme: String
    /// Whether the tracer does anything.
    let isTraced: Bool
    let admission: Admission
    let catalog: Catalog
    let events: EventLog
    /// The threads that run actions. A synchronous action keeps its thread as long as it likes.
    let threads: ThreadPool
    let calls = CallsInFlight()
    let departures: Departures
    let callTimes = CallTimes()
    let tallies = CallTallies()
    let countedActions = CountedActions()
    let pageFleet = PageFleet()
    let pageChanges = PageChanges()
    let pageRoutes = PageRoutes()
    let unsent: UnsentResults
    /// How many bodies are being read.
    let bodies = Mutex(0)
    private let phase = Mutex(Phase.starting)
    private let isTakenOut = Mutex(false)

    /// The phases of a gateway's life.
    enum Phase: Sendable {
        case starting, ready, notReady, draining, ended
    }

    /// Makes a gateway. It refuses all calls until its ``PluginHostService`` has started the host.
    ///
    /// - Parameters:
    ///   - host: The host. The scheme for targets and actions is the first of ``HostConfiguration/schemes``, or `call`,
    ///     if that is one of them.
    ///   - configuration: The settings.
    ///   - metrics: The registry to count in, which `/metrics` shows.
    ///   - tracer: The tracer for the spans of calls.
    ///   - logger: The log for the changes of modules that are made from the page.
    public init(
        _ host: PluginHost, _ configuration: GatewayConfiguration = .init(), metrics: PrometheusMetrics = .init(),
        tracer: any Tracer = InstrumentationSystem.tracer, logger: Logger = Logger(label: "PluginGateway")
    ) {
        (self.host, self.configuration, self.metrics, self.tracer) = (host, configuration, metrics, tracer)
        self.logger = logger
        let schemes = host.configuration.schemes
        scheme = schemes.contains("call") ? "call" : schemes.first ?? "call"
        isTraced = !(tracer is NoOpTracer)
        admission = Admission(total: configuration.callLimit, perModule: configuration.moduleCallLimit)
        threads = ThreadPool(limit: configuration.callLimit)
        catalog = Catalog(host)
        events = EventLog(kept: configuration.keptEvents, streams: configuration.streamLimit)
        unsent = UnsentResults(limit: configuration.unsentLimit)
        departures = Departures(writeTimeout: configuration.writeTimeout, bodyLimit: configuration.bodyLimit)
    }

    /// Whether `/readyz` succeeds: the host has started, and the gateway is neither ending nor taken out.
    public var isReady: Bool { phase.withLock { $0 == .ready } && !isTakenOut.withLock { $0 } }

    /// Whether the host has started.
    public var hasStarted: Bool { phase.withLock { $0 != .starting } }

    /// Takes the gateway out of the balancers in front of it, or puts it back. While it is out, `/readyz` answers 503;
    /// requests that still arrive are served as usual.
    ///
    /// - Parameter isOut: Whether it is out.
    public func takeOut(_ isOut: Bool) { isTakenOut.withLock { $0 = isOut } }

    /// Enters a phase, unless a later one has been reached.
    func enter(_ next: Phase) {
        phase.withLock { phase in
            switch (phase, next) {
            case (.starting, _), (.ready, _), (.notReady, .draining), (_, .ended): phase = next
            default: break
            }
        }
    }

    /// Throws the error for a call that comes too early or too late.
    func checkReady() throws(Problem) {
        switch phase.withLock({ $0 }) {
        case .ready, .notReady: return
        case .starting: throw Problem(.hostStarting, "The host is still starting.", retryAfter: 1)
        case .draining, .ended: throw Problem(.hostStopping, "The gateway is ending.", retryAfter: 5)
        }
    }

    /// Answers a request.
    ///
    /// - Parameters:
    ///   - request: The request.
    ///   - connection: The connection that it came by, if it is known. Without it, a client that leaves does not cancel
    ///     its call, and ``GatewayConfiguration/Access/loopback`` refuses everybody.
    public func respond(to request: Request, connection: Connection? = nil) async -> Response {
        let connection = connection.map(departures.find)
        let request = ReceivedRequest(request, connection)
        var response = await response(to: request, connection)
        if let cors = configuration.cors { response = cors.allow(response, to: request) }
        return request.method == .head ? response : response.ending(with: calls, departures, connection)
    }

    private func response(to request: ReceivedRequest, _ connection: Connection?) async -> Response {
        do throws(Problem) {
            try checkHeaders(request)
            let target = try RequestTarget(request, prefix: configuration.prefix)
            if let response = configuration.cors?.preflight(request) {
                try checkNoBody(request)
                return response
            }
            if let response = try operate(target, request) { return response }
            if let response = try pageFile(target, request, connection) { return response }
            let client = Client(name: try await checkAccess(target, request, connection))
            let answer = try await answer(target, request, client, connection)
            return try onceBodyIsRead { () throws(Problem) in try counted(answer, connection) }
        } catch {
            count(error)
            var problem = error
            problem.closes = error.closes || (request.hasBody && !error.isAfterBody)
            let response = problem.response(isHead: request.method == .head)
            return problem.closes ? response.closing(connection) : response
        }
    }

    private func answer(
        _ target: RequestTarget, _ request: ReceivedRequest, _ client: Client, _ connection: Connection?
    ) async throws(Problem) -> Response {
        switch target.path {
        case "/metrics": return try reading(request) { metricsResponse() }
        case "/openapi.json":
            let catalog = await catalog.typed()
            return try reading(request) { openAPIResponse(catalog) }
        case "/modules.json": return try reading(request) { () throws(Problem) in try modulesResponse(request) }
        case "/events": return try reading(request) { () throws(Problem) in try eventsResponse(request, connection) }
        case _ where target.path.hasPrefix("/page/") && configuration.page != .off:
            return try await page(target, request, client, connection)
        case _ where target.path.hasPrefix("/call/"): return try await call(target, request, client, connection)
        default: return try await open(target, request, client, connection)
        }
    }

    /// Answers what a supervisor asks for, without credentials; `nil` for other requests.
    private func operate(_ target: RequestTarget, _ request: ReceivedRequest) throws(Problem) -> Response? {
        switch target.path {
        case "/healthz": return try reading(request) { .text("ok\n") }
        case "/readyz":
            return try reading(request) { isReady ? .text("ready\n") : .text("not ready\n", .serviceUnavailable) }
        default: return nil
        }
    }

    /// Makes the response to a request that only reads.
    func reading(
        _ request: ReceivedRequest, _ make: () throws(Problem) -> Response
    ) throws(Problem) -> Response {
        guard request.method == .get || request.method == .head else {
            throw Problem.method(request.method, allowed: "GET, HEAD")
        }
        try checkNoBody(request)
        let response = try make()
        return request.method == .head ? response.createHeadResponse() : response
    }
}

extension PluginGateway {
    /// Refuses headers that servers on the way could read differently.
    private func checkHeaders(_ request: ReceivedRequest) throws(Problem) {
        // The first `Host` header is the authority of the request.
        guard request.header(.host) == nil else {
            throw Problem(.invalidHeader, "There is more than one header Host.", closes: true)
        }
        guard request.header(.expect).map({ $0.lowercased() == "100-continue" }) ?? true else {
            throw Problem(.invalidHeader, "The header Expect can only be 100-continue.", closes: true)
        }
    }

    /// Refuses a body that nobody would read.
    func checkNoBody(_ request: ReceivedRequest) throws(Problem) {
        guard request.hasBody else { return }
        throw Problem(.invalidValue, "A request with the method \(request.method.rawValue) may not have a body here.")
    }

    /// Runs what follows the reading of the body, and marks its errors.
    func afterBody<Result>(_ run: () async throws(Problem) -> Result) async throws(Problem) -> Result {
        do throws(Problem) { return try await run() } catch { throw error.afterBody }
    }

    /// Runs what follows the reading of the body, and waits for nothing, and marks its errors.
    func onceBodyIsRead<Result>(_ run: () throws(Problem) -> Result) throws(Problem) -> Result {
        do throws(Problem) { return try run() } catch { throw error.afterBody }
    }
}

extension HTTPField.Name {
    fileprivate static let host = Self("Host")!
}

extension Response {
    static func text(_ text: String, _ status: HTTPResponse.Status = .ok, type: String = "text/plain; charset=utf-8")
        -> Response
    {
        Response(
            status: status, headers: [.contentType: type, .cacheControl: "no-store"],
            body: ResponseBody(inPieces: ByteBuffer(string: text)))
    }
}
