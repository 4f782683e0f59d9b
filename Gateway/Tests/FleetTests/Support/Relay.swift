import Foundation

/// A server that passes each connection on to another server, and withholds all answers except the first ones.
final class Relay: Sendable {
    let port: Int
    private let listener: Int32

    /// - Parameters:
    ///   - url: The URL of the other server: `http://127.0.0.1:PORT`.
    ///   - answers: How many answers to successive requests are passed on.
    init(to url: String, answers: Int) throws {
        let listener = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        self.listener = listener
        guard let target = url.split(separator: ":").last.flatMap({ UInt16($0) }),
            let port = Self.withAddress(
                0, { bind(listener, $0, $1) },
                then: { address, length in
                    listen(listener, 16) == 0 && getsockname(listener, address, length) == 0
                })
        else { throw Failed(text: "The relay cannot listen.") }
        self.port = port
        Thread.detachNewThread {
            nonisolated(unsafe) var left = answers
            while case let client = accept(listener, nil, nil), client >= 0 {
                let server = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
                _ = Self.withAddress(target, { connect(server, $0, $1) }, then: { _, _ in true })
                let count = left
                left = 0
                Thread.detachNewThread { Self.copy(from: client, to: server, limit: nil) }
                Thread.detachNewThread { Self.copy(from: server, to: client, limit: count) }
            }
        }
    }

    deinit {
        shutdown(listener, Int32(SHUT_RDWR))
        close(listener)
    }

    private static func copy(from source: Int32, to sink: Int32, limit: Int?) {
        var (buffer, parts) = ([UInt8](repeating: 0, count: 1 << 20), 0)
        while case let count = read(source, &buffer, buffer.count), count > 0 {
            parts += 1
            if let limit, parts > limit { continue }
            var sent = 0
            while sent < count {
                let part = buffer[sent..<count].withUnsafeBytes {
                    send(sink, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL))
                }
                if part <= 0 { break }
                sent += part
            }
        }
        shutdown(sink, Int32(SHUT_WR))
    }

    private static func withAddress(
        _ port: UInt16, _ use: (UnsafePointer<sockaddr>, socklen_t) -> Int32,
        then: (UnsafeMutablePointer<sockaddr>, UnsafeMutablePointer<socklen_t>) -> Bool
    ) -> Int? {
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = inet_addr("127.0.0.1")
        address.sin_port = port.bigEndian
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let isDone = withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { use($0, length) == 0 && then($0, &length) }
        }
        return isDone ? Int(UInt16(bigEndian: address.sin_port)) : nil
    }
}
