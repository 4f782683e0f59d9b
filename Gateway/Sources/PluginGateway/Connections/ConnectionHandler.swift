import NIOCore

/// Notices if the client of a connection leaves, or does not read. Used only on the thread of its connection.
///
/// Whether a client reads is looked up from time to time, so that answers need no bookkeeping.
final class ConnectionHandler: ChannelInboundHandler, RemovableChannelHandler, @unchecked Sendable {
    typealias InboundIn = NIOAny

    private let departures: Departures
    private let bodyLimit: Int
    private let nearest = NearestHandler()
    /// The number of bytes that the client had not read when it was last looked up.
    private var unread = 0
    /// Whether the client has not yet read all that it had not read when ``mark(_:)`` was last called.
    private var isMarked = false
    /// The time when the client was last seen to read, or to have nothing to read.
    private var progress = NIODeadline.now()
    private var timer: Scheduled<Void>?

    init(_ departures: Departures, bodyLimit: Int) { (self.departures, self.bodyLimit) = (departures, bodyLimit) }

    // MARK: The client leaves

    func handlerAdded(context: ChannelHandlerContext) {
        departures.come(context.channel)
        RequestHeadHandler.add(to: context, bodyLimit: bodyLimit)
        try? context.pipeline.syncOperations.addHandler(nearest, position: .first)
        startTimer(context.channel)
    }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        if case .inputClosed? = event as? ChannelEvent { departures.left(ObjectIdentifier(context.channel)) }
        context.fireUserInboundEventTriggered(event)
    }

    func channelInactive(context: ChannelHandlerContext) {
        leave(context)
        context.fireChannelInactive()
    }

    func handlerRemoved(context: ChannelHandlerContext) { leave(context) }

    private func leave(_ context: ChannelHandlerContext) {
        timer?.cancel()
        timer = nil
        departures.closed(ObjectIdentifier(context.channel))
    }

    // MARK: The client does not read

    /// Keeps a share until the client has read all that has been written.
    func hold(_ share: UnsentResults.Share) { nearest.whenRead { withExtendedLifetime(share) {} } }

    /// Gives the client less time to read, because the gateway is ending.
    func hasten(_ channel: any Channel) {
        guard timer != nil else { return }
        progress = .now()
        startTimer(channel)
    }

    private func startTimer(_ channel: any Channel) {
        timer?.cancel()
        let period = max(1_000_000, departures.patience.nanoseconds / 4)
        timer = channel.eventLoop.scheduleTask(in: .nanoseconds(period)) { [self] in look(channel) }
    }

    /// Closes the connection if the client has not read for too long.
    private func look(_ channel: any Channel) {
        let bytes = (try? channel.syncOptions?.getOption(.bufferedWritableBytes)) ?? 0
        if bytes == 0 || unread == 0 || bytes < unread { progress = .now() }
        unread = bytes
        if bytes > 0 {
            if NIODeadline.now() - progress >= departures.patience {
                timer = nil
                return channel.close(promise: nil)
            }
            mark()
        }
        startTimer(channel)
    }

    /// Notes when the client has read all that it has not read yet. Meanwhile, more may be written.
    private func mark() {
        guard !isMarked else { return }
        isMarked = true
        nearest.whenRead { [self] in (isMarked, progress) = (false, .now()) }
    }
}

/// The handler that is nearest to the network. It handles nothing: it is there to write behind all bytes.
private final class NearestHandler: ChannelInboundHandler, RemovableChannelHandler {
    typealias InboundIn = NIOAny

    private var context: ChannelHandlerContext?

    func handlerAdded(context: ChannelHandlerContext) { self.context = context }
    func handlerRemoved(context: ChannelHandlerContext) { self.context = nil }

    /// Calls `body` when the client has read all bytes that have been written so far, or its connection is closed; at
    /// once if there is no connection.
    func whenRead(_ body: @escaping () -> Void) {
        guard let context else { return body() }
        let promise = context.eventLoop.makePromise(of: Void.self)
        promise.futureResult.assumeIsolated().whenComplete { _ in body() }
        context.writeAndFlush(NIOAny(ByteBuffer()), promise: promise)
    }
}
