import Foundation

/// A connection on which a test sends what no client would.
final class RawSocket: Sendable {
    private let descriptor: Int32

    /// - Parameter receiveBuffer: The size of the system's receive buffer in bytes; `nil` for its default.
    init(port: Int, receiveBuffer: Int32? = nil) throws {
        descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = in_port_t(port).bigEndian
        address.sin_addr.s_addr = inet_addr("127.0.0.1")
        var limit = timeval(tv_sec: 120, tv_usec: 0)
        setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
        if var receiveBuffer {
            setsockopt(descriptor, SOL_SOCKET, SO_RCVBUF, &receiveBuffer, socklen_t(MemoryLayout<Int32>.size))
        }
        let status = withUnsafePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
            }
        }
        guard status == 0 else { throw POSIXError(.ECONNREFUSED) }
    }

    deinit { Glibc.close(descriptor) }

    /// Sends as much as the other side takes. False if it has closed the connection.
    @discardableResult
    func send(_ text: String) throws -> Bool {
        let bytes = Array(text.utf8)
        var sent = 0
        while sent < bytes.count {
            let count = bytes[sent...].withUnsafeBytes {
                Glibc.send(descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL))
            }
            if count <= 0 { return false }
            sent += count
        }
        return true
    }

    /// Reads until the connection ends.
    func readAll() -> String {
        var bytes: [UInt8] = []
        while let part = read() { bytes += part }
        return String(decoding: bytes, as: UTF8.self)
    }

    /// Reads what has arrived; `nil` at the end.
    func read(atMost limit: Int = 65_536) -> [UInt8]? {
        var buffer = [UInt8](repeating: 0, count: limit)
        let count = recv(descriptor, &buffer, buffer.count, 0)
        return count > 0 ? Array(buffer[..<count]) : nil
    }

    func close() { shutdown(descriptor, Int32(SHUT_RDWR)) }
}

extension TestGateway {
    /// Sends a text on a new connection, and returns everything that is received until the connection is closed.
    func raw(_ text: String) async throws -> String {
        let port = port
        return try await onThread {
            let socket = try RawSocket(port: port)
            try socket.send(text)
            return socket.readAll()
        }
    }

    func rawGet(_ path: String) async throws -> String {
        try await raw("GET \(path) HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
    }
}
