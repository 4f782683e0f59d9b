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

    /// The response. If it has not been sent when the gateway ends the last calls, its connection is closed.
    func ending(with calls: CallsInFlight, _ connection: Connection?) -> Response {
        guard let channel = connection?.channel, body.contentLength != 0 else { return self }
        var response = self
        let body = self.body
        response.body = ResponseBody(contentLength: body.contentLength) { writer in
            let number = calls.add { _ in
                _ = channel.eventLoop.scheduleTask(in: .seconds(1)) { channel.close(promise: nil) }
            }
            defer { calls.remove(number) }
            try await body.write(writer)
        }
        return response
    }
}

// MARK: Pieces

extension ResponseBody {
    /// A body that is sent in pieces, so that a slow client is seen to read.
    init(inPieces buffer: ByteBuffer) {
        self.init(contentLength: buffer.readableBytes) { writer in
            for piece in buffer.pieces { try await writer.write(piece) }
            try await writer.finish(nil)
        }
    }
}

extension ByteBuffer {
    /// The bytes in pieces of 64 KiB.
    var pieces: some Sequence<ByteBuffer> {
        sequence(state: self) { rest in
            rest.readableBytes == 0 ? nil : rest.readSlice(length: min(rest.readableBytes, 65_536))
        }
    }
}
