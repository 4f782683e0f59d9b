import NIOCore

/// Notices if the client of a connection leaves, or does not read. It is the handler nearest to the network, and used
/// only on the thread of its connection.
///
/// Whether a client reads is looked up from time to time, so that answers need no bookkeeping.
final class ConnectionHandler: ChannelInboundHandler, RemovableChannelHandler, @unchecked Sendable {
    typealias InboundIn = NIOAny

    private let departures: Departures
    private var context: ChannelHandlerContext?
    /// The number of bytes that the client had not read when it was last looked up.
    private var unread = 0
    /// Whether the client has not yet read all that it had not read when ``mark(_:)`` was last called.
    private var isMarked = false
    /// The time when the client was last seen to read, or to have nothing to read.
    private var progress = NIODeadline.now()
    private var timer: Scheduled<Void>?

    init(_ departures: Departures) { self.departures = departures }

    // MARK: The client leaves

    func handlerAdded(context: ChannelHandlerContext) {
        self.context = context
        departures.come(context.channel)
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
        (timer, self.context) = (nil, nil)
        departures.closed(ObjectIdentifier(context.channel))
    }

    // MARK: The client does not read

    /// Keeps a share until the client has read all that has been written.
    func hold(_ share: UnsentResults.Share) { whenRead { withExtendedLifetime(share) {} } }

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
        whenRead { [self] in (isMarked, progress) = (false, .now()) }
    }

    /// Calls `body` when the client has read all bytes that have been written so far, or its connection is closed.
    private func whenRead(_ body: @escaping () -> Void) {
        guard let context else { return body() }
        let promise = context.eventLoop.makePromise(of: Void.self)
        promise.futureResult.assumeIsolated().whenComplete { _ in body() }
        context.writeAndFlush(NIOAny(ByteBuffer()), promise: promise)
    }
}

/// Adds the handlers that a connection needs, each in its place, and then removes itself.
final class ConnectionSetup: ChannelInboundHandler, RemovableChannelHandler {
    typealias InboundIn = NIOAny

    private let departures: Departures
    private let bodyLimit: Int

    init(_ departures: Departures, bodyLimit: Int) { (self.departures, self.bodyLimit) = (departures, bodyLimit) }

    func handlerAdded(context: ChannelHandlerContext) {
        let pipeline = context.pipeline.syncOperations
        RequestHeadHandler.add(to: context, bodyLimit: bodyLimit)
        try? pipeline.addHandler(ConnectionHandler(departures), position: .first)
        pipeline.removeHandler(context: context, promise: nil)
    }
}
