import Glibc
import NIOCore
import NIOHTTP1

/// Notices if the client of a connection leaves, or does not read. It is the handler nearest to the network, and used
/// only on the thread of its connection.
///
/// Whether a client reads is looked up from time to time, so that answers need no bookkeeping: with HTTP/1, by the number
/// of bytes that the system has not taken yet; for a stream of HTTP/2, which cannot be asked for it, by whether it takes
/// more.
final class ConnectionHandler: ChannelInboundHandler, RemovableChannelHandler, @unchecked Sendable {
    typealias InboundIn = NIOAny

    private let departures: Departures
    /// Whether the connection is one of HTTP/1, and not a stream of HTTP/2.
    private let carriesBytes: Bool
    private var context: ChannelHandlerContext?
    /// What to do when a stream of HTTP/2 takes more again.
    private var waiting: [() -> Void] = []
    /// The number of bytes that the client had not read when it was last looked up.
    private var unread = 0
    /// Whether the client has not yet read all that it had not read when ``mark(_:)`` was last called.
    private var isMarked = false
    /// The time when the client was last seen to read, or to have nothing to read.
    private var progress = NIODeadline.now()
    private var timer: Scheduled<Void>?

    init(_ departures: Departures, carriesBytes: Bool) {
        (self.departures, self.carriesBytes) = (departures, carriesBytes)
    }

    // MARK: The client leaves

    func handlerAdded(context: ChannelHandlerContext) {
        self.context = context
        departures.come(context.channel)
        if carriesBytes { limitUnsent(context.channel) }
        startTimer(context.channel)
    }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        departures.note(event, of: context.channel)
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
        endWaiting()
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
        let bytes = unreadBytes(channel)
        if bytes == 0 || unread == 0 || bytes < unread { progress = .now() }
        unread = bytes
        if bytes > 0 {
            if NIODeadline.now() - progress >= departures.patience {
                timer = nil
                return channel.close(promise: nil)
            }
            if carriesBytes { mark() }
        }
        startTimer(channel)
    }

    /// The number of bytes that the system has not taken yet; 1 if a stream of HTTP/2 takes no more.
    private func unreadBytes(_ channel: any Channel) -> Int {
        guard carriesBytes else { return channel.isWritable ? 0 : 1 }
        return (try? channel.syncOptions?.getOption(.bufferedWritableBytes)) ?? 0
    }

    /// Lets the system take only so many bytes that it has not sent yet. It would otherwise take some megabytes, and then
    /// no more before a third of them is sent: a client that reads slowly would seem not to read.
    private func limitUnsent(_ channel: any Channel) {
        let option = ChannelOptions.Types.SocketOption(
            level: .tcp, name: NIOBSDSocket.Option(rawValue: TCP_NOTSENT_LOWAT))
        try? channel.syncOptions?.setOption(option, value: 131_072)  // A socket that is not TCP has no such limit.
    }

    func channelWritabilityChanged(context: ChannelHandlerContext) {
        if !carriesBytes, context.channel.isWritable {
            progress = .now()
            endWaiting()
        }
        context.fireChannelWritabilityChanged()
    }

    private func endWaiting() {
        let bodies = waiting
        waiting = []
        for body in bodies { body() }
    }

    /// Notes when the client has read all that it has not read yet. Meanwhile, more may be written.
    private func mark() {
        guard !isMarked else { return }
        isMarked = true
        whenRead { [self] in (isMarked, progress) = (false, .now()) }
    }

    /// Calls `body` when the client has read all bytes that have been written so far, or a stream of HTTP/2 takes more, or
    /// its connection is closed.
    private func whenRead(_ body: @escaping () -> Void) {
        guard let context else { return body() }
        guard carriesBytes else {
            if context.channel.isWritable { body() } else { waiting.append(body) }
            return
        }
        let promise = context.eventLoop.makePromise(of: Void.self)
        promise.futureResult.assumeIsolated().whenComplete { _ in body() }
        context.writeAndFlush(NIOAny(ByteBuffer()), promise: promise)
    }
}

/// Adds the handlers that a connection needs, each in its place, and then removes itself.
final class ConnectionSetup: ChannelInboundHandler, RemovableChannelHandler, Sendable {
    typealias InboundIn = NIOAny

    private let departures: Departures
    private let bodyLimit: Int

    init(_ departures: Departures, bodyLimit: Int) { (self.departures, self.bodyLimit) = (departures, bodyLimit) }

    func handlerAdded(context: ChannelHandlerContext) {
        let pipeline = context.pipeline.syncOperations
        let reader = try? pipeline.handler(type: ByteToMessageHandler<HTTPRequestDecoder>.self)
        if let reader {
            let heads = RequestHeadHandler(departures, bodyLimit: bodyLimit)
            try? pipeline.addHandler(heads, position: .after(reader))
        }
        try? pipeline.addHandler(ConnectionHandler(departures, carriesBytes: reader != nil), position: .first)
        pipeline.removeHandler(context: context, promise: nil)
    }
}
