import HTTPTypes
import NIOCore
import NIOHTTP1

/// Handles what can no longer be seen once a request has been read: its version of HTTP, the form of its target, and that
/// its client waits before it sends the body (`Expect: 100-continue`). Answers what is not HTTP with a problem. Also notes
/// whether requests have arrived to their ends, and that the client closes its sending half: with TLS, that cannot be seen
/// nearer to the network.
///
/// Used on the thread of its connection only.
final class RequestHeadHandler: ChannelDuplexHandler, RemovableChannelHandler, @unchecked Sendable {
    typealias InboundIn = HTTPServerRequestPart
    typealias InboundOut = HTTPServerRequestPart
    typealias OutboundIn = HTTPServerResponsePart
    typealias OutboundOut = HTTPServerResponsePart

    private let departures: Departures
    private let bodyLimit: Int
    private var connected: Departures.Connected?
    /// How many requests have no complete response yet.
    private var unanswered = 0
    /// Whether a request has begun to arrive, and not ended.
    private var isInRequest = false
    /// Why no further request can be read.
    private var failure: Problem?
    /// Whether the request that is being answered is one of HTTP/1.0.
    private var isOld = false

    init(_ departures: Departures, bodyLimit: Int) { (self.departures, self.bodyLimit) = (departures, bodyLimit) }

    func handlerAdded(context: ChannelHandlerContext) { connected = departures.come(context.channel) }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        departures.note(event, of: context.channel)
        context.fireUserInboundEventTriggered(event)
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        let part = unwrapInboundIn(data)
        guard case .head(var head) = part else {
            if case .end = part {
                isInRequest = false
                connected?.hasWholeRequests = true
            }
            return context.fireChannelRead(data)
        }
        isInRequest = true
        connected?.hasWholeRequests = false
        unanswered += 1
        // Not before the response to an earlier request. In that case, the client sends its body unasked, after a
        // while.
        if unanswered == 1, expectsContinue(head) {
            let part = HTTPServerResponsePart.head(HTTPResponseHead(version: head.version, status: .continue))
            context.writeAndFlush(wrapOutboundOut(part), promise: nil)
        }
        if unanswered == 1 { isOld = head.version != .http1_1 }
        context.fireChannelRead(normalize(&head) ? wrapInboundOut(.head(head)) : data)
    }

    /// Changes what the server would understand differently. Returns whether there was anything to change.
    private func normalize(_ head: inout HTTPRequestHead) -> Bool {
        var isChanged = false
        // The server closes the connection only for exactly this value, and does not look at the version.
        if head.version != .http1_1 || !head.isKeepAlive, head.headers["Connection"] != ["close"] {
            head.headers.replaceOrAdd(name: "Connection", value: "close")
            isChanged = true
        }
        if head.version == .http1_1, !head.headers.contains(name: "Host") {
            // A name that no host has, so that the request is refused.
            head.headers.add(name: "Host", value: "?")
            isChanged = true
        }
        if head.uri.utf8.first != UInt8(ascii: "/") {
            // An absolute target (`GET http://…`) would become its path, and its host would be forgotten.
            head.uri = "*"
            isChanged = true
        }
        return isChanged
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        if let error = error as? HTTPParserError { failure = Problem(error) }
        context.fireErrorCaught(error)
    }

    func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
        var data = data
        switch unwrapOutboundIn(data) {
        case let part where unanswered == 0 && failure != nil: return answerFailure(part, context, promise)
        case .head(var head) where isOld:
            // Without chunks, which such a client cannot read. The content ends with the connection.
            head.version = .http1_0
            data = wrapOutboundOut(.head(head))
        case .end: unanswered = max(0, unanswered - 1)
        default: break
        }
        context.write(data, promise: promise)
    }

    /// Replaces the response, without content, that the server gives to a failure of the parser.
    private func answerFailure(
        _ part: HTTPServerResponsePart, _ context: ChannelHandlerContext, _ promise: EventLoopPromise<Void>?
    ) {
        // A request that has begun already has its response.
        guard !isInRequest, let problem = failure else {
            promise?.succeed()
            return
        }
        guard case .head = part else { return context.write(wrapOutboundOut(part), promise: promise) }
        let content = ByteBuffer(string: problem.json)
        let head = HTTPResponseHead(
            version: .http1_1, status: .init(statusCode: problem.status.code),
            headers: [
                "Content-Type": "application/problem+json", "Content-Length": String(content.readableBytes),
                "Connection": "close",
            ])
        context.write(wrapOutboundOut(.head(head)), promise: nil)
        context.write(wrapOutboundOut(.body(.byteBuffer(content))), promise: promise)
    }

    /// Whether the client should be asked to send the body of a request. A body that is too large is refused before it
    /// is sent.
    private func expectsContinue(_ head: HTTPRequestHead) -> Bool {
        guard head.version == .http1_1, head.headers.first(name: "Expect")?.lowercased() == "100-continue" else {
            return false
        }
        return head.headers.first(name: "Content-Length").map { Int($0).map { $0 <= bodyLimit } ?? false } ?? true
    }
}

extension Problem {
    /// The problem of a text that is not a request.
    fileprivate init(_ error: HTTPParserError) {
        if error == .headerOverflow {
            self.init(.headerTooLarge, "The request has too many header fields, or too large ones.")
        } else {
            let reason = error == .unknown ? "" : ": \(error)"
            self.init(.invalidRequest, "This is not a request of HTTP/1.1\(reason).")
        }
    }
}
