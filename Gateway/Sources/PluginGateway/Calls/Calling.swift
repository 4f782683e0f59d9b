import HTTPTypes
import Hummingbird
import PluginABI
import PluginHost

/// The parameters of a call; those of a path in Hummingbird have the same name.
typealias CallParameters = PluginABI.Parameters

/// One call, ready to be made.
struct GatewayCall: Sendable {
    let url: String
    let parameters: CallParameters
    let timeout: Duration
    /// The module and the action that it leads to; `nil` if it leads to none.
    let module: String?
    let action: String?
}

extension PluginGateway {
    /// `POST /call/{target}/{action}`.
    func call(
        _ target: RequestTarget, _ request: Request, _ connection: Connection?
    ) async throws(Problem) -> Response {
        let names = target.path.dropFirst("/call/".count).split(separator: "/", omittingEmptySubsequences: false)
        guard names.count == 2, names.allSatisfy(isName) else {
            throw Problem(.noRoute, "There is nothing at this path. An action is at /call/{target}/{action}.")
        }
        guard request.method == .post else { throw Problem.method(request.method, allowed: "POST") }
        try checkReady()
        let (name, action) = (String(names[0]), String(names[1]))
        let url = "\(scheme)://\(name)/\(action)"
        try checkAction(url, "\(name)/\(action)")
        let known = catalog.current.action(name, action)
        let timeout = try timeout(of: request)
        let parameters = try await parameters(of: request, for: known?.action)
        let call = GatewayCall(
            url: url + target.query, parameters: parameters, timeout: timeout,
            module: known?.module, action: "\(name)/\(action)")
        return try await afterBody { () throws(Problem) in try await make(call, request, connection) }
    }

    /// The scheme by which the host finds targets and actions by their names.
    private var scheme: String {
        let schemes = host.configuration.schemes
        return schemes.contains("call") ? "call" : schemes.first ?? "call"
    }

    /// Refuses a URL that does not lead to the action that it names: routes, and fallbacks of targets, precede names.
    private func checkAction(_ url: String, _ action: String) throws(Problem) {
        let found = host.resolve(url, origin: .remote)
        guard found.route == nil, found.fallback == nil, found.action == action else {
            throw Problem(.noRoute, "There is no remote action “\(action)”.")
        }
    }

    /// Whether a text can be the name of a target or an action.
    private func isName(_ text: Substring) -> Bool {
        guard (1...256).contains(text.utf8.count), let first = text.first, first.isLetter || first == "_" else {
            return false
        }
        return text.allSatisfy { $0.isASCII && ($0.isLetter || $0.isNumber || "_.-".contains($0)) }
    }

    /// Makes a call and answers with its result.
    func make(_ call: GatewayCall, _ request: Request, _ connection: Connection?) async throws(Problem) -> Response {
        let start = ContinuousClock.now
        do throws(Problem) {
            let response = try await traced(call, request) { () throws(Problem) in
                let running = RunningCall(
                    gateway: self, call: call, place: try admission.enter(call.module), connection: connection)
                return try await self.response(try await running.open(), running)
            }
            count(call, nil, since: start)
            return response
        } catch {
            count(call, error, since: start)
            throw error
        }
    }
}
