import Foundation
import PluginABI
import PluginHost
import Synchronization

/// A client of a host's control socket, which speaks plain lines.
final class SocketClient {
    private let descriptor: Int32
    private var received: [UInt8] = []

    /// Connects as soon as somebody listens, within half a minute.
    init(_ path: String) throws {
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path.utf8) }
        descriptor = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        var isConnected = false
        for _ in 0..<3000 where !isConnected {
            isConnected = withUnsafePointer(to: &address) { pointer in
                pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                    connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_un>.size)) == 0
                }
            }
            if !isConnected { usleep(10_000) }
        }
        guard isConnected else { throw POSIXError(.ECONNREFUSED) }
        var patience = timeval(tv_sec: 20, tv_usec: 0)
        setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &patience, socklen_t(MemoryLayout<timeval>.size))
    }

    deinit { close(descriptor) }

    func send(_ method: String, _ parameters: Value = [:], count: Int = 1) {
        let line: Value = ["jsonrpc": "2.0", "id": 1, "method": .string(method), "params": parameters]
        var rest = Array(String(repeating: line.json + "\n", count: count).utf8)[...]
        while !rest.isEmpty {
            let count = rest.withUnsafeBytes { Glibc.send(descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL)) }
            guard count > 0 else { return }
            rest.removeFirst(count)
        }
    }

    /// The next answer; nil at the end, or after twenty seconds.
    func answer() -> Value? {
        while true {
            if let end = received.firstIndex(of: UInt8(ascii: "\n")) {
                defer { received.removeFirst(end + 1) }
                return try? Value(json: String(decoding: received[..<end], as: UTF8.self))
            }
            var chunk = [UInt8](repeating: 0, count: 64 << 10)
            let count = recv(descriptor, &chunk, chunk.count, 0)
            guard count > 0 else { return nil }
            received += chunk[..<count]
        }
    }

    func ask(_ method: String, _ parameters: Value = [:]) -> Value? {
        send(method, parameters)
        return answer()
    }
}
