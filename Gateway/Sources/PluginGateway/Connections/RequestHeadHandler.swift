import NIOCore
import NIOHTTP1

/// Handles what can no longer be seen once a request has been read: the form of its target, and that its client waits
/// before it sends the body (`Expect: 100-continue`). Also notes whether requests have arrived to their ends, and that the
/// client closes its sending half: with TLS, that cannot be seen nearer to the network.
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

    init(_ departures: Departures, bodyLimit: Int) { (self.departures, self.bodyLimit) = (departures, bodyLimit) }

    func handlerAdded(context: ChannelHandlerContext) { connected = departures.come(context.channel) }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        departures.note(event, of: context.channel)
        context.fireUserInboundEventTriggered(event)
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        let part = unwrapInboundIn(data)
        guard case .head(var head) = part else {
            if case .end = part { connected?.hasWholeRequests = true }
            return context.fireChannelRead(data)
        }
        connected?.hasWholeRequests = false
        unanswered += 1
        // Not before the response to an earlier request. In that case, the client sends its body unasked, after a
        // while.
        if unanswered == 1, expectsContinue(head) {
            let part = HTTPServerResponsePart.head(HTTPResponseHead(version: head.version, status: .continue))
            context.writeAndFlush(wrapOutboundOut(part), promise: nil)
        }
        // An absolute target (`GET http://…`) would become its path, and its host would be forgotten.
        guard head.uri.utf8.first != UInt8(ascii: "/") else { return context.fireChannelRead(data) }
        head.uri = "*"
        context.fireChannelRead(wrapInboundOut(.head(head)))
    }

    func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
        if case .end = unwrapOutboundIn(data) { unanswered = max(0, unanswered - 1) }
        context.write(data, promise: promise)
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
