import HTTPTypes
import Hummingbird
import NIOCore
import PluginABI
import PluginHost

extension PluginGateway {
    /// Handles the requests of the page, below `/page/`. Pages of other origins cannot make such requests, whatever
    /// CORS allows them.
    func page(
        _ target: RequestTarget, _ request: ReceivedRequest, _ client: Client, _ connection: Connection?
    ) async throws(Problem) -> Response {
        try checkOrigin(request)
        switch target.path {
        case "/page/state": return try reading(request) { .page(pageState) }
        case "/page/statistics": return try reading(request) { .page(pageStatistics) }
        case "/page/module":
            let modules = await catalog.typed().modules
            return try reading(request) { () throws(Problem) in .page(try pageModule(request, modules)) }
        case "/page/routes":
            _ = try reading(request) { .page(.null) }
            let response = Response.json(await pageRoutes.text(of: host)).ofPage
            return request.method == .head ? response.createHeadResponse() : response
        case "/page/fleet": return try reading(request) { .page(pageFleet.value) }
        case "/page/resolve": return try await resolve(request)
        case "/page/remove": return try await change(.remove, request, client, connection)
        case "/page/rollback": return try await change(.rollback, request, client, connection)
        case "/page/retry": return try await change(.retry, request, client, connection)
        default: throw Problem(.noRoute, "There is nothing at this path.")
        }
    }

    /// `POST /page/resolve`: what a URL leads to, for a caller from outside or, with `local`, for the program.
    private func resolve(_ request: ReceivedRequest) async throws(Problem) -> Response {
        let entries = try await entries(of: request, ["url", "local"])
        return try await afterBody { () throws(Problem) in
            let url = try entries.text("url")
            let isLocal = try entries.flag("local")
            // A local caller's URL starts the module that it leads to, if it is registered.
            if isLocal { try checkAllowsChanges() }
            try checkReady()
            guard isLocal else { return .page(host.resolve(url, origin: .remote).record) }
            return .page(try await pageChanges.run { [host] in host.resolve(url, origin: .local).record })
        }
    }

    func checkAllowsChanges() throws(Problem) {
        guard configuration.page == .changes else {
            throw Problem(
                .forbidden,
                "This gateway's page cannot change modules. Start the gateway with --allow-changes, or set "
                    + "configuration.page to .changes.")
        }
    }

    /// Reads the entries of a JSON object in the body of a request.
    ///
    /// - Parameter names: The names that entries may have.
    func entries(of request: ReceivedRequest, _ names: Set<String>) async throws(Problem) -> [String: Value] {
        guard request.method == .post else { throw Problem.method(request.method, allowed: "POST") }
        guard try mediaType(of: request) == "application/json" else {
            throw Problem(.unsupportedMediaType, "Send application/json.")
        }
        let body = try await body(of: request)
        return try onceBodyIsRead { () throws(Problem) in
            let value: Value
            do throws(PluginError) {
                value = try body.withUnsafeReadableBytes { (bytes) throws(PluginError) in
                    try Value(strictJSON: bytes)
                }
            } catch {
                throw Problem(error)
            }
            guard case .map(let entries) = value else {
                throw Problem(.invalidValue, "The body must be a JSON object.")
            }
            if let name = entries.keys.sorted().first(where: { !names.contains($0) }) {
                throw Problem(.unknownParameter, "The body has the unknown entry “\(name.prefix(100))”.")
            }
            return entries
        }
    }
}

extension [String: Value] {
    /// Returns a text, which is required.
    func text(_ name: String) throws(Problem) -> String {
        guard let text = try text(ifGiven: name) else {
            throw Problem(.missingParameter, "The body lacks the entry “\(name)”.")
        }
        return text
    }

    func text(ifGiven name: String) throws(Problem) -> String? {
        guard let value = self[name], !value.isNull else { return nil }
        guard let text = value.string else {
            throw Problem(.mistypedParameter, "The entry “\(name)” must be a string.")
        }
        return text
    }

    /// Returns a flag; false if it is not given.
    func flag(_ name: String) throws(Problem) -> Bool {
        guard let value = self[name] else { return false }
        guard let flag = value.bool else {
            throw Problem(.mistypedParameter, "The entry “\(name)” must be true or false.")
        }
        return flag
    }

    /// Returns a list of texts; `nil` if it is not given.
    func texts(ifGiven name: String) throws(Problem) -> [String]? {
        guard let value = self[name], !value.isNull else { return nil }
        guard let list = value.list, case let texts = list.compactMap(\.string), texts.count == list.count else {
            throw Problem(.mistypedParameter, "The entry “\(name)” must be a list of strings.")
        }
        return texts
    }
}

extension Response {
    /// A response with JSON for the page.
    static func page(_ value: Value) -> Response { .json(ByteBuffer(string: value.json)).ofPage }

    static func json(_ text: ByteBuffer) -> Response {
        Response(
            status: .ok, headers: [.contentType: "application/json", .cacheControl: "no-store"],
            body: ResponseBody(inPieces: text))
    }
}
