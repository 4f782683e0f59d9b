import HTTPTypes
import Hummingbird

/// The part of a request that the gateway reads. An object, since requests are large and would be copied often.
final class ReceivedRequest: Sendable {
    let method: HTTPRequest.Method
    /// The path with the query, as it was sent; `nil` if there is none.
    let path: String?
    let authority: String?
    let headers: HTTPFields
    let body: RequestBody
    private let connected: Departures.Connected?

    /// - Parameter connection: The connection that the request came by, if it is known.
    init(_ request: Request, _ connection: Connection?) {
        connected = connection?.connected
        let head = request.head
        (method, path, authority, headers) = (head.method, head.path, head.authority, head.headerFields)
        body = request.body
    }

    /// Returns the value of a header field, as `headers[name]`, which takes a while; `nil` if there is none.
    func header(_ name: HTTPField.Name) -> String? {
        var value: String?
        for field in headers where field.name == name {
            guard value == nil else { return headers[name] }
            value = field.value
        }
        return value
    }

    /// Whether a body follows the head.
    var hasBody: Bool { header(.transferEncoding) != nil || (header(.contentLength) ?? "0") != "0" }

    /// Whether the whole request has arrived; false if that is not known.
    var isWhole: Bool { connected?.hasWholeRequests ?? false }
}
