public import Hummingbird
public import NIOCore
import Synchronization

/// The connection that a request came by.
public struct Connection: Sendable {
    let channel: any Channel

    /// - Parameter channel: The channel of the connection.
    public init(_ channel: any Channel) { self.channel = channel }

    /// Whether the client is on this machine.
    var isLoopback: Bool {
        guard let address = channel.remoteAddress else { return false }
        guard let text = address.ipAddress else { return address.pathname != nil }
        return text == "::1" || ["127.", "::ffff:127."].contains { text.hasPrefix($0) }
    }
}

/// A context that knows the connection of its request. With it, a client that leaves cancels its call.
public protocol ConnectionContext: RequestContext {
    /// The channel of the connection.
    var channel: any Channel { get }
}

/// The context of the requests of the program `pluginhost-gateway`.
public struct GatewayContext: ConnectionContext {
    public var coreContext: CoreRequestContextStorage
    public let channel: any Channel

    public init(source: ApplicationRequestContextSource) {
        coreContext = .init(source: source)
        channel = source.channel
    }
}

/// Which clients have left, and what to do when others leave.
final class Departures: Sendable {
    private let leavers = Mutex<[ObjectIdentifier: @Sendable () -> Void]>([:])
    private let watched = Mutex<Set<ObjectIdentifier>>([])

    /// Calls `leave` once, on the thread of the connection, if the client closes its connection before ``forget(_:)``.
    /// Requests of a connection come one after the other.
    func watch(_ connection: Connection, _ leave: @escaping @Sendable () -> Void) async {
        let (channel, id) = (connection.channel, ObjectIdentifier(connection.channel))
        leavers.withLock { $0[id] = leave }
        guard watched.withLock({ $0.insert(id).inserted }) else { return }
        let isAdded: Void? = try? await channel.pipeline.addHandler(DepartureHandler(self, id), position: .first).get()
        if isAdded == nil || !channel.isActive {
            watched.withLock { _ = $0.remove(id) }
            left(id)
        }
    }

    func forget(_ connection: Connection) {
        leavers.withLock { _ = $0.removeValue(forKey: ObjectIdentifier(connection.channel)) }
    }

    fileprivate func left(_ id: ObjectIdentifier) { leavers.withLock { $0.removeValue(forKey: id) }?() }

    fileprivate func closed(_ id: ObjectIdentifier) {
        left(id)
        watched.withLock { _ = $0.remove(id) }
    }
}

/// Notices that a client leaves: it closes its connection, or the half by which it sends.
private final class DepartureHandler: ChannelInboundHandler, Sendable {
    typealias InboundIn = NIOAny

    let departures: Departures
    let id: ObjectIdentifier

    init(_ departures: Departures, _ id: ObjectIdentifier) { (self.departures, self.id) = (departures, id) }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        if case .inputClosed? = event as? ChannelEvent { departures.left(id) }
        context.fireUserInboundEventTriggered(event)
    }

    func channelInactive(context: ChannelHandlerContext) {
        departures.closed(id)
        context.fireChannelInactive()
    }

    func handlerRemoved(context: ChannelHandlerContext) { departures.closed(id) }
}

extension Response {
    /// The response, after which the connection is closed: what the client still sends is not read to its end. The client
    /// has a second to read the response.
    func closing(_ connection: Connection?) -> Response {
        guard let channel = connection?.channel else { return self }
        var response = self
        let body = self.body
        response.body = ResponseBody(contentLength: body.contentLength) { writer in
            _ = channel.eventLoop.scheduleTask(in: .seconds(1)) { channel.close(promise: nil) }
            try await body.write(writer)
        }
        return response
    }
}
