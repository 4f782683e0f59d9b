import HTTPTypes
import Hummingbird
import PluginABI
import PluginHost

extension PluginGateway {
    /// Answers a request for a route of a module: its URL is opened, for a caller from outside.
    func open(
        _ target: RequestTarget, _ request: ReceivedRequest, _ client: Client, _ connection: Connection?
    ) async throws(Problem) -> Response {
        try checkReady()
        let catalog = catalog.current
        guard !target.host.isEmpty, let found = try find(target, request, catalog) else {
            throw Problem(.noRoute, "There is nothing at this path.")
        }
        let timeout = try timeout(of: request)
        if !request.method.hasBody { try checkNoBody(request) }
        let (parameters, events) = try await given(request, target, found.destination.declaration)
        let call = GatewayCall(
            found.url, found.method, parameters, client, timeout: timeout, found.destination, events)
        let response = try await make(call, request, connection)
        return request.method == .head ? response.createHeadResponse() : response
    }

    private struct Found {
        let url: String
        let method: RouteMethod
        let destination: KnownDestination
    }

    /// Finds the route of a request; `nil` if there is none. Routes are tried for `https` first, then for `http`; how
    /// the client has connected does not matter, since there may be a proxy in between.
    private func find(
        _ target: RequestTarget, _ request: ReceivedRequest, _ catalog: Catalog.Contents
    ) throws(Problem) -> Found? {
        let method = request.method
        let asked = method == .head ? .get : RouteMethod(rawValue: method.rawValue)
        var others: Set<RouteMethod> = []
        for scheme in catalog.schemes {
            let url = "\(scheme)://\(target.host)\(target.path)\(target.query)"
            let destination = try self.destination(of: url, asked ?? .get, catalog)
            if let asked, let destination, case let answer = destination.methods.answer(asked), answer != .none {
                if answer == .unstated, asked == .get { try checkSender(request) }
                return Found(url: url, method: asked, destination: destination)
            }
            others.formUnion(
                host.resolve(url, method: asked ?? .get, origin: .remote).methods.filter { method in
                    (try? self.destination(of: url, method, catalog))?.methods.answer(method) ?? .none != .none
                })
        }
        guard !others.isEmpty else { return nil }
        let allowed = RouteMethod.allCases.filter(others.contains)
            .flatMap { $0 == .get ? ["GET", "HEAD"] : [$0.rawValue] }
        throw Problem.method(method, allowed: allowed.joined(separator: ", "))
    }

    /// Finds where a URL leads; `nil` if it leads nowhere.
    private func destination(
        of url: String, _ method: RouteMethod, _ catalog: Catalog.Contents
    ) throws(Problem) -> KnownDestination? {
        do throws(PluginError) {
            return try catalog.destination(of: url, method, self)
        } catch {
            if error.code == .invalidURL { throw Problem(error) }
            return nil
        }
    }
}
