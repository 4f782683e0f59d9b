public import NIOCore
import Synchronization

/// The connected clients, and what to do when one leaves. A client leaves when it closes its connection, or its sending
/// half.
final class Departures: Sendable {
    /// The client of one connection.
    final class Connected: Sendable {
        private struct State {
            var hasLeft = false
            /// What is ended if the client leaves.
            var watched: (any EarlyEnding)?
            /// The client, if it has presented a certificate.
            var client: Client?
            /// Whether the client is on this machine; `nil` until that has been looked up.
            var isLoopback: Bool?
        }

        fileprivate let channel: any Channel
        private let state = Mutex(State())
        private let isWhole = Atomic(false)

        fileprivate init(_ channel: any Channel) { self.channel = channel }

        /// Ends something once, as soon as the client leaves.
        fileprivate func watch(_ watched: any EarlyEnding) {
            let hasLeft = state.withLock { state in
                state.watched = watched
                return state.hasLeft
            }
            if hasLeft { watched.end(.clientLeft) }
        }

        /// Ends what ``Departures/watch(_:_:)`` has begun.
        func forget() {
            let watched = state.withLock { $0.watched.take() }
            withExtendedLifetime(watched) {}
        }

        fileprivate func leave() {
            let watched = state.withLock { state in
                state.hasLeft = true
                return state.watched
            }
            watched?.end(.clientLeft)
        }

        /// Whether all requests whose heads have arrived have arrived to their ends. False if that is not known.
        var hasWholeRequests: Bool {
            get { isWhole.load(ordering: .acquiring) }
            set { isWhole.store(newValue, ordering: .releasing) }
        }

        /// Whether the client is on this machine.
        var isLoopback: Bool {
            state.withLock { state in
                if let known = state.isLoopback { return known }
                let isLoopback = channel.remoteAddress?.isLoopback ?? false
                state.isLoopback = isLoopback
                return isLoopback
            }
        }

        var client: Client? {
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

    /// Ends something once, on the thread of the connection or immediately, if the client leaves before the returned
    /// object is told to forget it, or has already left. Requests of a connection come one after the other.
    ///
    /// A client that leaves while the handler is being added is not noticed; ``PluginGateway/connectionHandler`` is
    /// there from the beginning.
    func watch(_ connection: Connection, _ watched: any EarlyEnding) async -> Connected? {
        var connected = find(connection).connected
        if connected == nil {
            try? await connection.channel.pipeline.addHandler(handler(), position: .first).get()
            connected = find(connection).connected
        }
        if let connected { connected.watch(watched) } else { watched.end(.clientLeft) }
        return connected
    }

    /// Returns the connection with its client, if that is known.
    func find(_ connection: Connection) -> Connection {
        if connection.connected != nil { return connection }
        var connection = connection
        connection.connected = state.withLock { $0.connections[ObjectIdentifier(connection.channel)] }
        return connection
    }

    /// Keeps a share until the client has read all that was written so far, or its connection is closed.
    func hold(_ share: UnsentResults.Share, _ connection: Connection) {
        let channel = connection.channel
        // After the writes, which go to the thread of the connection as well.
        channel.eventLoop.execute {
            try? channel.pipeline.syncOperations.handler(type: ConnectionHandler.self).hold(share)
        }
    }

    @discardableResult func come(_ channel: any Channel) -> Connected {
        let id = ObjectIdentifier(channel)
        return state.withLock { state in
            let connected = state.connections[id] ?? Connected(channel)
            state.connections[id] = connected
            return connected
        }
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
