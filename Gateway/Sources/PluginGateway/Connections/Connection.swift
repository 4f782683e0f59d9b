public import Hummingbird
public import NIOCore
import Synchronization

/// The connection that a request came by.
public struct Connection: Sendable {
    let channel: any Channel
    /// The client, if its leaving is noticed; see ``Departures/find(_:)``.
    var connected: Departures.Connected?

    /// - Parameter channel: The channel of the connection.
    public init(_ channel: any Channel) { self.channel = channel }

    /// The address of the client, without its port; `nil` if it has none.
    var address: String? { channel.remoteAddress?.ipAddress }

    /// Whether the client is on this machine.
    var isLoopback: Bool { connected?.isLoopback ?? channel.remoteAddress?.isLoopback ?? false }
}

extension SocketAddress {
    /// Whether the address is one of this machine.
    var isLoopback: Bool {
        // Reads bytes of the address, at their place in the structures of the system.
        func bytes<Result>(_ range: Range<Int>, _ use: (UnsafeRawBufferPointer.SubSequence) -> Result) -> Result {
            withSockAddr { use(UnsafeRawBufferPointer(start: $0, count: $1)[range]) }
        }
        switch self {
        case .unixDomainSocket: return true
        case .v4: return bytes(4..<8) { $0.first == 127 }
        case .v6:
            return bytes(8..<24) { bytes in
                // ::1, and 127.0.0.0/8 as addresses of IPv6: ::ffff:127.…
                bytes.starts(with: [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF, 127])
                    || bytes.elementsEqual([0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1])
            }
        }
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
    /// Returns the response so that the connection is closed after it: what the client still sends is not read to its
    /// end. The client has ``Departures/lastPatience`` to read the response.
    func closing(_ connection: Connection?) -> Response {
        guard let channel = connection?.channel else { return self }
        var response = self
        let body = self.body
        response.body = ResponseBody(contentLength: body.contentLength) { writer in
            _ = channel.eventLoop.scheduleTask(in: Departures.lastPatience) { channel.close(promise: nil) }
            try await body.write(writer)
        }
        return response
    }

    /// The response. If it has not been sent when the gateway ends the last calls, its connection is closed. For short
    /// responses, ``ConnectionHandler`` does that.
    func ending(with calls: CallsInFlight, _ departures: Departures, _ connection: Connection?) -> Response {
        guard let connection, body.contentLength != 0 else { return self }
        if (body.contentLength ?? .max) <= ByteBuffer.pieceLength, departures.find(connection).connected != nil {
            return self
        }
        let channel = connection.channel
        var response = self
        let body = self.body
        response.body = ResponseBody(contentLength: body.contentLength) { writer in
            let closing = EndHandler { _ in
                _ = channel.eventLoop.scheduleTask(in: Departures.lastPatience) { channel.close(promise: nil) }
            }
            let number = calls.add(closing)
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
        if buffer.readableBytes <= ByteBuffer.pieceLength {
            self.init(byteBuffer: buffer)
            return
        }
        self.init(contentLength: buffer.readableBytes) { writer in
            for piece in buffer.pieces { try await writer.write(piece) }
            try await writer.finish(nil)
        }
    }
}

extension ByteBuffer {
    static let pieceLength = 65_536

    /// The bytes in pieces of 64 KiB.
    var pieces: some Sequence<ByteBuffer> {
        sequence(state: self) { rest in
            rest.readableBytes == 0 ? nil : rest.readSlice(length: min(rest.readableBytes, Self.pieceLength))
        }
    }
}
