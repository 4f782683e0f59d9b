import AsyncHTTPClient
import Foundation
import NIOCore
import NIOHTTP1
import Synchronization
import Testing

/// Which requests HAProxy repeats with the configuration file of `Gateway/Fleet`.
@Suite(.enabled(if: hasEtcd, "The tests of fleets need haproxy."))
struct BalancerTests {
    @Test func `a request whose host dies is made three times if it may be, else once`() async throws {
        let (folder, server, port) = (try makeFolder(), try DyingServer(), try freePort())
        let url = URL(filePath: #filePath).appending(path: "../../../Fleet/haproxy.cfg").standardized
        var text = try String(contentsOf: url, encoding: .utf8)
        try "/call/Shop/look\n".write(toFile: "\(folder)/list", atomically: true, encoding: .utf8)
        for (old, new) in [
            ("/etc/haproxy/idempotent.list", "\(folder)/list"), ("/run/haproxy/admin.sock", "\(folder)/admin.sock"),
            ("abns@pluginhost-gateways", "abns@pluginhost-dying-\(getpid())"), ("bind :8080", "bind 127.0.0.1:\(port)"),
            ("10.0.0.11:8080", "127.0.0.1:\(server.port)"), ("10.0.0.12:8080", "127.0.0.1:\(server.port)"),
            ("10.0.0.13:8080", "127.0.0.1:\(server.port)"),
        ] { text = text.replacing(old, with: new) }
        try text.write(toFile: "\(folder)/haproxy.cfg", atomically: true, encoding: .utf8)
        let balancer = try Child(["haproxy", "-f", "\(folder)/haproxy.cfg", "-db"], log: "\(folder)/log")
        defer { balancer.end() }
        func status(_ method: HTTPMethod, _ path: String) async throws -> UInt {
            var request = HTTPClientRequest(url: "http://127.0.0.1:\(port)\(path)")
            request.method = method
            if method == .POST || method == .PATCH { request.body = .bytes(ByteBuffer(string: "{}")) }
            return try await HTTPClient.shared.execute(request, timeout: .seconds(30)).status.code
        }
        #expect(await becomesTrue { try await status(.GET, "/readyz") == 200 }, "\(balancer.text)")
        for (method, path, times) in [
            (HTTPMethod.POST, "/call/Shop/look", 3), (.POST, "/call/Shop/buy", 1), (.PATCH, "/call/Shop/look", 1),
            (.GET, "/call/Shop/look", 3),
        ] {
            let before = server.count
            #expect(try await status(method, path) == 502)
            #expect(server.count - before == times, "\(method) \(path)")
        }
    }
}

/// A server that reports that it is ready, and closes the connection of every other request without an answer.
private final class DyingServer: Sendable {
    let port: Int
    private let listener: Int32
    private let requests = Box()

    private final class Box: Sendable {
        let count = Mutex(0)
    }

    /// The number of requests that it did not answer.
    var count: Int { requests.count.withLock { $0 } }

    init() throws {
        let port = try freePort()
        let listener = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        (self.port, self.listener) = (port, listener)
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = inet_addr("127.0.0.1")
        address.sin_port = UInt16(port).bigEndian
        let isListening = withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                bind(listener, $0, socklen_t(MemoryLayout<sockaddr_in>.size)) == 0 && listen(listener, 64) == 0
            }
        }
        guard isListening else { throw Failed(text: "The server cannot listen.") }
        Thread.detachNewThread { [requests] in
            while case let connection = accept(listener, nil, nil), connection >= 0 {
                Thread.detachNewThread {
                    defer { close(connection) }
                    var buffer = [UInt8](repeating: 0, count: 1 << 16)
                    let count = read(connection, &buffer, buffer.count)
                    guard count > 0 else { return }
                    guard String(decoding: buffer[..<count], as: UTF8.self).contains(" /readyz ") else {
                        requests.count.withLock { $0 += 1 }
                        return
                    }
                    let answer = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
                    send(connection, answer, answer.utf8.count, Int32(MSG_NOSIGNAL))
                }
            }
        }
    }

    deinit {
        shutdown(listener, Int32(SHUT_RDWR))
        close(listener)
    }
}
