import HTTPTypes
import Hummingbird

/// Which web pages of other origins may use a gateway, by the CORS protocol of browsers. Credentials that browsers add
/// on their own, such as cookies, are not supported; a page can send a token.
public struct CORS: Sendable {
    /// The origins of the pages, such as `https://shop.example`, in lower case.
    public let origins: Set<String>
    /// The header fields that pages may send, besides `Accept`, `Authorization`, `Content-Type`, `Last-Event-ID`,
    /// `Timeout`, `traceparent` and `tracestate`.
    public var headers: [String] = []
    /// How long a browser may use the answer for further requests, in seconds.
    public var maximumAge = 600

    /// - Parameter origins: The origins, each a scheme and a host, with a port unless it is the usual one.
    /// - Returns: `nil` if one of them is not an origin: if it has a path or the default port, or no scheme.
    public init?(origins: some Sequence<String>) {
        self.origins = Set(origins.map { $0.lowercased() })
        guard self.origins.allSatisfy(Self.isOrigin) else { return nil }
    }

    private static func isOrigin(_ text: String) -> Bool {
        guard let scheme = ["https://", "http://"].first(where: text.hasPrefix) else { return false }
        let authority = text.dropFirst(scheme.count)
        guard let host = try? RequestTarget.host(String(authority)), !host.isEmpty else { return false }
        let port = authority.dropFirst(host.utf8.count)
        guard !port.isEmpty else { return true }
        // Browsers leave the usual port out.
        guard let number = UInt16(port.dropFirst()), number > 0, ":\(number)" == port else { return false }
        return number != (scheme == "https://" ? 443 : 80)
    }

    /// Whether the page of a request may use the gateway.
    func allows(_ request: ReceivedRequest) -> Bool {
        request.header(.origin).map { origins.contains($0.lowercased()) } ?? false
    }

    /// Answers a browser's preflight request; `nil` for other requests.
    func preflight(_ request: ReceivedRequest) -> Response? {
        guard request.method == .options, request.header(.accessControlRequestMethod) != nil, allows(request) else {
            return nil
        }
        let names = Self.ownHeaders + headers
        return Response(
            status: .noContent,
            headers: [
                .accessControlAllowMethods: "GET, HEAD, POST, PUT, PATCH, DELETE",
                .accessControlAllowHeaders: names.joined(separator: ", "), .accessControlMaxAge: String(maximumAge),
            ])
    }

    private static let ownHeaders = [
        "Accept", "Authorization", "Content-Type", "Last-Event-ID", "Timeout", "traceparent", "tracestate",
    ]

    /// Adds the headers that the browser needs to show the response to the page.
    func allow(_ response: Response, to request: ReceivedRequest) -> Response {
        var response = response
        response.headers.append(HTTPField(name: .vary, value: "Origin"))
        guard allows(request), let origin = request.header(.origin) else { return response }
        response.headers[.accessControlAllowOrigin] = origin
        response.headers[.accessControlExposeHeaders] = "Allow, Retry-After"
        return response
    }
}
