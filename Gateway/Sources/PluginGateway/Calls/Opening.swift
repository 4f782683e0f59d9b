import HTTPTypes
import Hummingbird
import PluginABI
import PluginHost

extension PluginGateway {
    /// Answers a request for a route of a module: its URL is opened, for a caller from outside.
    func open(
        _ target: RequestTarget, _ request: Request, _ client: Client, _ connection: Connection?
    ) async throws(Problem) -> Response {
        try checkReady()
        let catalog = catalog.current
        guard !target.host.isEmpty, let found = try find(target, request, catalog) else {
            throw Problem(.noRoute, "There is nothing at this path.")
        }
        let (module, name) = (found.explanation.module, found.explanation.action)
        let known = name.flatMap(catalog.action)
        let timeout = try timeout(of: request)
        if !request.method.hasBody { try checkNoBody(request) }
        let (parameters, events) = try await given(request, target, known)
        let call = GatewayCall(
            found.url, found.method, parameters, client, timeout: timeout, module: module, action: name,
            counted: countedActions.of(module, name, self), known: known, events: events)
        let response = try await makeAfterBody(call, request, connection)
        return request.method == .head ? response.createHeadResponse() : response
    }

    private struct Found {
        let url: String
        let method: RouteMethod
        let explanation: URLExplanation
    }

    /// Finds the route of a request; `nil` if there is none. Routes are tried for `https` first, then for `http`; how
    /// the client has connected does not matter, since there may be a proxy in between.
    private func find(
        _ target: RequestTarget, _ request: Request, _ catalog: Catalog.Contents
    ) throws(Problem) -> Found? {
        let method = request.method
        let asked = method == .head ? .get : RouteMethod(rawValue: method.rawValue)
        var others: Set<RouteMethod> = []
        for scheme in catalog.schemes {
            let url = "\(scheme)://\(target.host)\(target.path)\(target.query)"
            let found = host.destination(of: url, method: asked ?? .get, origin: .remote)
            if let asked, case let answer = catalog.answer(found.route, asked), answer != .none {
                if answer == .unstated, asked == .get { try checkSender(request) }
                return Found(url: url, method: asked, explanation: found)
            }
            if let error = found.error, error.code == .invalidURL { throw Problem(error) }
            others.formUnion(
                host.resolve(url, method: asked ?? .get, origin: .remote).methods.filter { method in
                    catalog.answer(host.destination(of: url, method: method, origin: .remote).route, method) != .none
                })
        }
        guard !others.isEmpty else { return nil }
        let allowed = RouteMethod.allCases.filter(others.contains)
            .flatMap { $0 == .get ? ["GET", "HEAD"] : [$0.rawValue] }
        throw Problem.method(method, allowed: allowed.joined(separator: ", "))
    }
}
