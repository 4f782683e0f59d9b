import Foundation
import NIOCore
import NIOPosix
import Synchronization

/// Connections, each of which has sent one request and stays open.
struct Clients {
    private let channels: [any Channel]
    private let readers: [Reader]

    init(count: Int, port: Int, path: String) async throws {
        let request = "GET \(path) HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
        var (channels, readers): ([any Channel], [Reader]) = ([], [])
        for _ in 0..<count {
            let reader = Reader()
            let channel = try await ClientBootstrap(group: MultiThreadedEventLoopGroup.singleton)
                .channelInitializer { $0.pipeline.addHandler(reader) }
                .connect(host: "127.0.0.1", port: port).get()
            try await channel.writeAndFlush(ByteBuffer(string: request))
            channels.append(channel)
            readers.append(reader)
        }
        (self.channels, self.readers) = (channels, readers)
    }

    /// Waits until each connection has received a text.
    func wait(for text: String) async throws {
        let end = ContinuousClock.now + .seconds(60)
        while !readers.allSatisfy({ $0.has(text) }) {
            guard ContinuousClock.now < end else {
                throw Failure(description: "Not every connection received “\(text)” within a minute.")
            }
            try await Task.sleep(for: .milliseconds(5))
        }
    }

    /// Returns when the first and the last connection received a text, in milliseconds since 1970.
    func times(of text: String) -> (first: Double, last: Double) {
        let times = readers.map { $0.time(of: text) }
        return (times.min() ?? 0, times.max() ?? 0)
    }

    /// What the first connection has received.
    var text: String { readers.first?.text ?? "" }

    func close() async { for channel in channels { try? await channel.close() } }
}

/// Keeps what a connection receives.
private final class Reader: ChannelInboundHandler, Sendable {
    typealias InboundIn = ByteBuffer

    private let parts = Mutex<[(text: String, time: Double)]>([])

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        let new = String(buffer: unwrapInboundIn(data))
        parts.withLock { $0.append((($0.last?.text ?? "") + new, Date().timeIntervalSince1970 * 1000)) }
    }

    var text: String { parts.withLock { $0.last?.text ?? "" } }
    func has(_ part: String) -> Bool { text.contains(part) }

    /// Returns when a text was complete.
    func time(of part: String) -> Double {
        parts.withLock { $0.first { $0.text.contains(part) }?.time ?? .infinity }
    }
}
