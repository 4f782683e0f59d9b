public import NIOCore
import Synchronization

/// The connected clients, and what to do when one leaves. A client leaves when it closes its connection, or its sending
/// half.
final class Departures: Sendable {
    /// The client of one connection.
    final class Connected: Sendable {
        private struct State {
            var hasLeft = false
            var leave: (@Sendable () -> Void)?
            /// The client, if it has presented a certificate.
            var client: Client?
        }

        fileprivate let channel: any Channel
        private let state = Mutex(State())

        fileprivate init(_ channel: any Channel) { self.channel = channel }

        /// Calls `leave` once, as soon as the client leaves.
        fileprivate func watch(_ leave: @escaping @Sendable () -> Void) {
            let hasLeft = state.withLock { state in
                state.leave = leave
                return state.hasLeft
            }
            if hasLeft { leave() }
        }

        /// Ends what ``Departures/watch(_:_:)`` has begun.
        func forget() {
            let leave = state.withLock { $0.leave.take() }
            withExtendedLifetime(leave) {}
        }

        fileprivate func leave() {
            let leave = state.withLock { state in
                state.hasLeft = true
                return state.leave
            }
            leave?()
        }

        fileprivate var client: Client? {
            get { state.withLock(\.client) }
            set { state.withLock { $0.client = newValue } }
        }
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
    func handler() -> ConnectionSetup { ConnectionSetup(self, bodyLimit: bodyLimit) }

    /// Calls `leave` once, on the thread of the connection or immediately, if the client leaves before the returned
    /// object is told to forget it, or has already left. Requests of a connection come one after the other.
    ///
    /// A client that leaves while the handler is being added is not noticed; ``PluginGateway/connectionHandler`` is
    /// there from the beginning.
    func watch(_ connection: Connection, _ leave: @escaping @Sendable () -> Void) async -> Connected? {
        var connected = self.connected(connection)
        if connected == nil {
            try? await connection.channel.pipeline.addHandler(handler(), position: .first).get()
            connected = self.connected(connection)
        }
        if let connected { connected.watch(leave) } else { leave() }
        return connected
    }

    private func connected(_ connection: Connection) -> Connected? {
        state.withLock { $0.connections[ObjectIdentifier(connection.channel)] }
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
        connected(connection)?.client
    }

    func set(_ client: Client, of connection: Connection) {
        connected(connection)?.client = client
    }

    func come(_ channel: any Channel) {
        let id = ObjectIdentifier(channel)
        state.withLock { $0.connections[id] = $0.connections[id] ?? Connected(channel) }
    }

    /// Whether the gateway notices if the client of this connection leaves or does not read.
    func isWatched(_ connection: Connection) -> Bool {
        connected(connection) != nil
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

    /// Notes an event of a connection, which may be that the client has closed its sending half.
    func note(_ event: Any, of channel: any Channel) {
        if case .inputClosed? = event as? ChannelEvent { left(ObjectIdentifier(channel)) }
    }

    private func left(_ id: ObjectIdentifier) {
        state.withLock { $0.connections[id] }?.leave()
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
