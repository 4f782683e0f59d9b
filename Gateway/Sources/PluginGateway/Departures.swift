public import NIOCore
import Synchronization

/// The clients that leave, and what to do then. A client leaves when it closes its connection, or the half by which it
/// sends.
final class Departures: Sendable {
    private struct Connected {
        var hasLeft = false
        var leave: (@Sendable () -> Void)?
        /// The client, if it has shown a certificate.
        var client: Client?
    }

    private let writeTimeout: Duration
    private let bodyLimit: Int
    private let connections = Mutex<[ObjectIdentifier: Connected]>([:])

    init(writeTimeout: Duration, bodyLimit: Int) { (self.writeTimeout, self.bodyLimit) = (writeTimeout, bodyLimit) }

    /// The handler for a connection.
    fileprivate func handler() -> ConnectionHandler {
        ConnectionHandler(self, writeTimeout: writeTimeout, bodyLimit: bodyLimit)
    }

    /// Calls `leave` once, on the thread of the connection or immediately, if the client leaves before ``forget(_:)``,
    /// or has left already. Requests of a connection come one after the other.
    ///
    /// A client that leaves while the handler is being added is not noticed; ``PluginGateway/connectionHandler`` is
    /// there from the beginning.
    func watch(_ connection: Connection, _ leave: @escaping @Sendable () -> Void) async {
        let channel = connection.channel
        let id = ObjectIdentifier(channel)
        if set(leave, id) { return }
        try? await channel.pipeline.addHandler(handler(), position: .first).get()
        if !set(leave, id) { leave() }
    }

    /// Returns false if the connection is not watched.
    private func set(_ leave: @escaping @Sendable () -> Void, _ id: ObjectIdentifier) -> Bool {
        let hasLeft = connections.withLock { connections in
            connections[id]?.leave = leave
            return connections[id]?.hasLeft
        }
        if hasLeft == true { leave() }
        return hasLeft != nil
    }

    func forget(_ connection: Connection) {
        connections.withLock { $0[ObjectIdentifier(connection.channel)]?.leave = nil }
    }

    /// Holds something until the client has read all that was written so far, or its connection is closed.
    func hold(_ share: UnsentResults.Share, _ connection: Connection) {
        let channel = connection.channel
        // After the writes, which go to the thread of the connection as well.
        channel.eventLoop.execute {
            try? channel.pipeline.syncOperations.handler(type: ConnectionHandler.self).hold(share)
        }
    }

    /// Returns the client that has shown a certificate, if that is already known.
    func client(of connection: Connection) -> Client? {
        connections.withLock { $0[ObjectIdentifier(connection.channel)]?.client }
    }

    func set(_ client: Client, of connection: Connection) {
        connections.withLock { $0[ObjectIdentifier(connection.channel)]?.client = client }
    }

    fileprivate func come(_ id: ObjectIdentifier) { connections.withLock { $0[id] = $0[id] ?? Connected() } }

    fileprivate func left(_ id: ObjectIdentifier) {
        let leave = connections.withLock { connections in
            connections[id]?.hasLeft = true
            return connections[id]?.leave
        }
        leave?()
    }

    fileprivate func closed(_ id: ObjectIdentifier) {
        left(id)
        connections.withLock { _ = $0.removeValue(forKey: id) }
    }
}

extension PluginGateway {
    /// A handler for each connection of the server. It notices that the client leaves, answers `Expect: 100-continue`,
    /// and closes the connection if the client does not read for ``GatewayConfiguration/writeTimeout``.
    ///
    ///     HTTPServerBuilder.http1(configuration: .init(additionalChannelHandlers: [gateway.connectionHandler]))
    ///
    /// Without it, the gateway adds one when the first call of a connection begins.
    public var connectionHandler: any RemovableChannelHandler { departures.handler() }
}

/// Used on the thread of its connection only.
private final class ConnectionHandler: ChannelDuplexHandler, RemovableChannelHandler, @unchecked Sendable {
    typealias InboundIn = NIOAny
    typealias OutboundIn = NIOAny

    private let departures: Departures
    private let writeTimeout: TimeAmount
    private let bodyLimit: Int
    /// How many writes the client has not read, and when the last one was read or the first one begun.
    private var unread = 0
    private var progress = NIODeadline.now()
    private var timer: Scheduled<Void>?
    /// What is held until nothing is unread.
    private var held: [UnsentResults.Share] = []

    init(_ departures: Departures, writeTimeout: Duration, bodyLimit: Int) {
        (self.departures, self.bodyLimit) = (departures, bodyLimit)
        self.writeTimeout = TimeAmount(writeTimeout)
    }

    // MARK: The client leaves

    func handlerAdded(context: ChannelHandlerContext) {
        departures.come(ObjectIdentifier(context.channel))
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
        if timer == nil { check(context.channel, after: writeTimeout) }
        context.write(data, promise: promise)
    }

    func hold(_ share: UnsentResults.Share) { if unread > 0 { held.append(share) } }

    private func check(_ channel: any Channel, after delay: TimeAmount) {
        timer = channel.eventLoop.scheduleTask(in: delay) { [self] in
            timer = nil
            guard unread > 0 else { return }
            let waited = NIODeadline.now() - progress
            if waited >= writeTimeout { return channel.close(promise: nil) }
            check(channel, after: writeTimeout - waited)
        }
    }
}
