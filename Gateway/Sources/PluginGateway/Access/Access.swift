import HTTPTypes
import Hummingbird

extension PluginGateway {
    /// Checks whether the client may use the gateway.
    func checkAccess(_ request: Request, _ connection: Connection?) throws(Problem) {
        switch configuration.access {
        case .everyone: return
        case .tokens(let tokens):
            let parts = (request.headers[.authorization] ?? "").split(separator: " ", maxSplits: 1)
            guard parts.count == 2, parts[0].lowercased() == "bearer", tokens.contains(parts[1].trimmingSpaces) else {
                var problem = Problem(.unauthorized, "Send one of the gateway's tokens: Authorization: Bearer TOKEN.")
                problem.challenge = "Bearer"
                throw problem
            }
        case .loopback:
            guard connection?.isLoopback == true else {
                throw Problem(.forbidden, "Without tokens, only clients on the gateway's own machine may use it.")
            }
            try checkWebPage(request)
        }
    }

    /// Keeps out web pages: a browser on this machine sends their requests from this machine.
    private func checkWebPage(_ request: Request) throws(Problem) {
        guard let authority = request.head.authority, !authority.isEmpty else { return }
        let host = try RequestTarget.host(authority)
        guard ["localhost", "127.0.0.1", "[::1]"].contains(host) || configuration.hosts.contains(host) else {
            throw Problem(
                .misdirected,
                "The gateway does not serve the host “\(host.prefix(100))”. Its configuration can add hosts.")
        }
        guard let origin = request.headers[.origin] else { return }
        guard ["http://\(authority)", "https://\(authority)"].contains(origin.lowercased()) else {
            throw Problem(.forbidden, "The gateway does not accept requests of web pages from other origins.")
        }
    }
}
