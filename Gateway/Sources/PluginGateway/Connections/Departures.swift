public import NIOCore
import Synchronization

/// The connected clients, and what to do when one leaves. A client leaves when it closes its connection, or its sending
/// half.
final class Departures: Sendable {
    private struct Connected {
        let channel: any Channel
        var hasLeft = false
        var leave: (@Sendable () -> Void)?
        /// The client, if it has presented a certificate.
        var client: Client?
    }

    private struct State {
        var connections: [ObjectIdentifier: Connected] = [:]
        /// Whether the gateway is ending the last calls.
        var isEnding = false
    }

    private let writeTimeout: Duration
    private let bodyLimit: Int
    private let state = Mutex(State())

    init(writeTimeout: Duration, bodyLimit: Int) { (self.writeTimeout, self.bodyLimit) = (writeTimeout, bodyLimit) }

    /// The handler for a connection.
    func handler() -> ConnectionHandler {
        ConnectionHandler(self, bodyLimit: bodyLimit)
    }

    /// Calls `leave` once, on the thread of the connection or immediately, if the client leaves before ``forget(_:)``,
    /// or has already left. Requests of a connection come one after the other.
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
        let hasLeft = state.withLock { state in
            state.connections[id]?.leave = leave
            return state.connections[id]?.hasLeft
        }
        if hasLeft == true { leave() }
        return hasLeft != nil
    }

    func forget(_ connection: Connection) {
        state.withLock { $0.connections[ObjectIdentifier(connection.channel)]?.leave = nil }
    }

    /// Keeps a share until the client has read all that was written so far, or its connection is closed.
    func hold(_ share: UnsentResults.Share, _ connection: Connection) {
        let channel = connection.channel
        // After the writes, which go to the thread of the connection as well.
        channel.eventLoop.execute {
            try? channel.pipeline.syncOperations.handler(type: ConnectionHandler.self).hold(share)
        }
    }

    /// Returns the client that has presented a certificate, if it is already known.
    func client(of connection: Connection) -> Client? {
        state.withLock { $0.connections[ObjectIdentifier(connection.channel)]?.client }
    }

    func set(_ client: Client, of connection: Connection) {
        state.withLock { $0.connections[ObjectIdentifier(connection.channel)]?.client = client }
    }

    func come(_ channel: any Channel) {
        let id = ObjectIdentifier(channel)
        state.withLock { $0.connections[id] = $0.connections[id] ?? Connected(channel: channel) }
    }

    /// Whether the gateway notices if the client of this connection leaves or does not read.
    func isWatched(_ connection: Connection) -> Bool {
        state.withLock { $0.connections[ObjectIdentifier(connection.channel)] != nil }
    }

    /// How long clients may take to read once the gateway ends the last calls.
    static let lastPatience = TimeAmount.seconds(5)

    /// How long a client may take to read before its connection is closed.
    var patience: TimeAmount {
        state.withLock(\.isEnding) ? min(Self.lastPatience, TimeAmount(writeTimeout)) : TimeAmount(writeTimeout)
    }

    /// Closes the connections of clients that do not read, after ``lastPatience``.
    func endAll() {
        let channels = state.withLock { state in
            state.isEnding = true
            return state.connections.values.map(\.channel)
        }
        for channel in channels {
            channel.eventLoop.execute {
                try? channel.pipeline.syncOperations.handler(type: ConnectionHandler.self).hasten(channel)
            }
        }
    }

    func left(_ id: ObjectIdentifier) {
        let leave = state.withLock { state in
            state.connections[id]?.hasLeft = true
            return state.connections[id]?.leave
        }
        leave?()
    }

    func closed(_ id: ObjectIdentifier) {
        left(id)
        state.withLock { _ = $0.connections.removeValue(forKey: id) }
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
