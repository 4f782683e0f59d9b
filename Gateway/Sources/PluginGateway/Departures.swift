public import NIOCore
import Synchronization

/// The clients that leave, and what to do then. A client leaves when it closes its connection, or the half by which it
/// sends.
final class Departures: Sendable {
    private struct Connected {
        var hasLeft = false
        var leave: (@Sendable () -> Void)?
    }

    private let connections = Mutex<[ObjectIdentifier: Connected]>([:])

    /// Calls `leave` once, on the thread of the connection or at once, if the client leaves before ``forget(_:)``, or
    /// has left already. Requests of a connection come one after the other.
    ///
    /// A client that leaves while the handler is being added is not noticed; ``PluginGateway/departureHandler`` is there
    /// from the beginning.
    func watch(_ connection: Connection, _ leave: @escaping @Sendable () -> Void) async {
        let channel = connection.channel
        let id = ObjectIdentifier(channel)
        if set(leave, id) { return }
        try? await channel.pipeline.addHandler(DepartureHandler(self), position: .first).get()
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
    /// A handler for each connection of the server, which notices that its client leaves.
    ///
    ///     HTTPServerBuilder.http1(configuration: .init(additionalChannelHandlers: [gateway.departureHandler]))
    ///
    /// Without it, the gateway adds one when the first call of a connection begins.
    public var departureHandler: any RemovableChannelHandler { DepartureHandler(departures) }
}

private final class DepartureHandler: ChannelInboundHandler, RemovableChannelHandler, Sendable {
    typealias InboundIn = NIOAny

    private let departures: Departures

    init(_ departures: Departures) { self.departures = departures }

    func handlerAdded(context: ChannelHandlerContext) { departures.come(ObjectIdentifier(context.channel)) }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        if case .inputClosed? = event as? ChannelEvent { departures.left(ObjectIdentifier(context.channel)) }
        context.fireUserInboundEventTriggered(event)
    }

    func channelInactive(context: ChannelHandlerContext) {
        departures.closed(ObjectIdentifier(context.channel))
        context.fireChannelInactive()
    }

    func handlerRemoved(context: ChannelHandlerContext) { departures.closed(ObjectIdentifier(context.channel)) }
}
