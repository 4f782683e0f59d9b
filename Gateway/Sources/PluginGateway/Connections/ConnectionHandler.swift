import NIOCore

/// Notices if the client of a connection leaves, or does not read. Used only on the thread of its connection.
final class ConnectionHandler: ChannelDuplexHandler, RemovableChannelHandler, @unchecked Sendable {
    typealias InboundIn = NIOAny
    typealias OutboundIn = NIOAny

    private let departures: Departures
    private let bodyLimit: Int
    /// The number of writes that the client has not read, and the time when it last read one, or when the first began.
    private var unread = 0
    private var progress = NIODeadline.now()
    private var timer: Scheduled<Void>?
    /// The shares that are kept until the client has read everything.
    private var held: [UnsentResults.Share] = []

    init(_ departures: Departures, bodyLimit: Int) { (self.departures, self.bodyLimit) = (departures, bodyLimit) }

    // MARK: The client leaves

    func handlerAdded(context: ChannelHandlerContext) {
        departures.come(context.channel)
        RequestHeadHandler.add(to: context, bodyLimit: bodyLimit)
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

    func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
        let promise = promise ?? context.eventLoop.makePromise()
        if unread == 0 { progress = .now() }
        unread += 1
        promise.futureResult.whenComplete { [self] _ in
            unread -= 1
            progress = .now()
            if unread == 0 { held = [] }
        }
        if timer == nil { check(context.channel, after: departures.patience) }
        context.write(data, promise: promise)
    }

    func hold(_ share: UnsentResults.Share) { if unread > 0 { held.append(share) } }

    /// Gives the client less time to read, because the gateway is ending.
    func hasten(_ channel: any Channel) {
        timer?.cancel()
        (timer, progress) = (nil, .now())
        if unread > 0 { check(channel, after: departures.patience) }
    }

    private func check(_ channel: any Channel, after delay: TimeAmount) {
        timer = channel.eventLoop.scheduleTask(in: delay) { [self] in
            timer = nil
            guard unread > 0 else { return }
            let (waited, patience) = (NIODeadline.now() - progress, departures.patience)
            if waited >= patience { return channel.close(promise: nil) }
            check(channel, after: patience - waited)
        }
    }
}
