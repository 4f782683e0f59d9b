import HTTPTypes
import Hummingbird

/// A client that was authenticated.
struct Client: Sendable {
    /// The name of the client's token, or the subject of its certificate; `nil` if it has none.
    let name: String?
}

extension PluginGateway {
    /// Checks whether the client may use the gateway, and returns its name; `nil` if it has none.
    func checkAccess(
        _ target: RequestTarget, _ request: ReceivedRequest, _ connection: Connection?
    ) async throws(Problem) -> String? {
        switch configuration.access {
        case .everyone:
            if !configuration.hosts.isEmpty { try checkHost(target, request) }
            try checkWebPage(request)
        case .certificates:
            guard let connection, let client = await departures.certificate(of: connection) else {
                throw Problem(.forbidden, "Only clients with a certificate may use the gateway.")
            }
            try checkWebPage(request)
            return client.name
        case .tokens(let tokens):
            let parts = (request.header(.authorization) ?? "").split(separator: " ", maxSplits: 1)
            guard parts.count == 2, parts[0].lowercased() == "bearer",
                let client = tokens.client(parts[1].trimmingSpaces)
            else {
                var problem = Problem(.unauthorized, "Send one of the gateway's tokens: Authorization: Bearer TOKEN.")
                problem.challenge = "Bearer"
                throw problem
            }
            return client.name
        case .loopback:
            try checkLoopback(target, request, connection)
            try checkWebPage(request)
        }
        return nil
    }

    /// Keeps out clients on other machines.
    func checkLoopback(
        _ target: RequestTarget, _ request: ReceivedRequest, _ connection: Connection?
    ) throws(Problem) {
        guard connection?.isLoopback == true else {
            throw Problem(.forbidden, "Without tokens, only clients on the gateway's own machine may use it.")
        }
        try checkHost(target, request)
    }

    /// Keeps out web pages that resolve their own name to this machine.
    private func checkHost(_ target: RequestTarget, _ request: ReceivedRequest) throws(Problem) {
        guard let authority = request.authority, !authority.isEmpty else { return }
        let host = target.host
        let isOwn = host == "localhost" || host == "127.0.0.1" || host == "[::1]"
        guard isOwn || configuration.hosts.contains(host) else {
            throw Problem(
                .misdirected,
                "The gateway does not serve the host “\(host.prefix(100))”. Its configuration can add hosts.")
        }
    }

    /// Keeps out web pages of other origins: a browser sends their requests with the address and the certificate of its
    /// user.
    private func checkWebPage(_ request: ReceivedRequest) throws(Problem) {
        let isKnown = request.statesSender
        guard isKnown || request.isOfBrowser else { return }
        if isKnown, configuration.cors?.allows(request) != true { try checkOrigin(request) }
        guard request.method != .post || request.header(.contentType) != nil else {
            throw Problem(.unsupportedMediaType, "A web page must send a Content-Type. Send application/json.")
        }
    }

    /// Refuses a GET by which a web page of another origin could have an effect. A route that states no method may lead
    /// to an action that changes something, and a browser sends a GET for any page, for instance for an image, with the
    /// address and the certificate of its user. Most browsers state which page sends the request, which
    /// ``checkWebPage(_:)`` has checked. Old browsers do not, nor does any browser that uses HTTP without TLS to
    /// another machine.
    func checkSender(_ request: ReceivedRequest) throws(Problem) {
        // Browsers do not add tokens by themselves.
        if case .tokens = configuration.access { return }
        guard request.statesSender || !request.isOfBrowser else {
            throw Problem(
                .forbidden,
                "The browser does not state which web page sent this request, and the route does not state the method "
                    + "GET. Use HTTPS, a current browser, or a token; or give the route the method GET.")
        }
    }

    /// Keeps out all web pages but those of the gateway itself.
    func checkOrigin(_ request: ReceivedRequest) throws(Problem) {
        let authority = (request.authority ?? "").lowercased()
        let origins = ["http://\(authority)", "https://\(authority)"]
        let isOwn = request.header(.origin).map { origins.contains($0.lowercased()) } ?? true
        guard isOwn, ["same-origin", "none"].contains(request.header(.fetchSite) ?? "none") else {
            throw Problem(.forbidden, "The gateway does not accept requests of web pages from other origins.")
        }
    }
}

extension ReceivedRequest {
    /// Whether the browser states which page sends the request.
    fileprivate var statesSender: Bool { header(.origin) != nil || header(.fetchSite) != nil }

    /// Whether the request has a header that all browsers send, and that pages cannot omit or change without a
    /// preflight request.
    fileprivate var isOfBrowser: Bool {
        if let languages = header(.acceptLanguage), languages != "*" { return true }
        return header(.userAgent)?.hasPrefix("Mozilla/") == true
    }
}

extension HTTPField.Name {
    fileprivate static let fetchSite = Self("Sec-Fetch-Site")!
}
