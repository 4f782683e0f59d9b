import HTTPTypes
import Hummingbird
import PluginABI
import PluginHost

extension PluginGateway {
    /// Answers a request for a route of a module: its URL is opened, for a caller from outside.
    func open(
        _ target: RequestTarget, _ request: Request, _ connection: Connection?
    ) async throws(Problem) -> Response {
        try checkReady()
        let catalog = catalog.current
        guard !target.host.isEmpty, let found = try find(target, catalog) else {
            throw Problem(.noRoute, "There is nothing at this path.")
        }
        // A route of the program itself, or one that has just come, can have parameters of any kind.
        let methods = catalog.route(found.explanation.route)?.methods ?? [.get, .head, .post]
        guard methods.contains(request.method) else {
            throw Problem.method(request.method, allowed: methods.map(\.rawValue).joined(separator: ", "))
        }
        let names = found.explanation.action?.split(separator: "/").map(String.init) ?? []
        let action = names.count == 2 ? catalog.action(names[0], names[1])?.action : nil
        let timeout = try timeout(of: request)
        if request.method != .post { try checkNoBody(request) }
        let (parameters, events) = try await given(request, target, action)
        let call = GatewayCall(
            url: found.url, parameters: parameters, timeout: timeout, module: found.explanation.module,
            action: found.explanation.action, events: events)
        let response = try await afterBody { () throws(Problem) in try await make(call, request, connection) }
        return request.method == .head ? response.createHeadResponse() : response
    }

    /// Finds the route of a request. Routes are tried for `https` first, then for `http`; how the client has connected
    /// does not matter, since there may be a proxy in between.
    private func find(
        _ target: RequestTarget, _ catalog: Catalog.Contents
    ) throws(Problem) -> (url: String, explanation: URLExplanation)? {
        for scheme in catalog.schemes {
            let url = "\(scheme)://\(target.host)\(target.path)\(target.query)"
            let explanation = host.resolve(url, origin: .remote)
            if explanation.route != nil { return (url, explanation) }
            if let error = explanation.error, error.code == .invalidURL { throw Problem(error) }
        }
        return nil
    }
}
