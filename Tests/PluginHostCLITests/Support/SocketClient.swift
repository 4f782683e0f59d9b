import Foundation
import PluginABI
import PluginHost
import Synchronization

@testable import PluginHostCLI
@testable import TestSupport

/// A client of a control socket that sends and receives plain lines.
final class SocketClient: Sendable {
    private let descriptor: CInt
    private let received = Mutex<[UInt8]>([])

    /// Connects as soon as a server listens. It waits for answers for ten minutes.
    init(_ path: String) throws {
        descriptor = UnixSocket.make()
        let descriptor = descriptor
        guard eventually({ UnixSocket.connect(descriptor, to: path) == 0 }) else { throw POSIXError(.ECONNREFUSED) }
        var patience = timeval(tv_sec: 600, tv_usec: 0)
        setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &patience, socklen_t(MemoryLayout<timeval>.size))
    }

    deinit { close(descriptor) }

    func write(_ text: String) {
        var rest = Array(text.utf8)[...]
        while !rest.isEmpty {
            let count = rest.withUnsafeBytes { Glibc.send(descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL)) }
            guard count > 0 else { return }
            rest.removeFirst(count)
        }
    }

    func send(_ line: String) { write(line + "\n") }

    /// Sends a request `count` times.
    func request(_ method: String, _ parameters: Value = [:], count: Int = 1) {
        let line: Value = ["jsonrpc": "2.0", "id": 1, "method": .string(method), "params": parameters]
        write(String(repeating: line.json + "\n", count: count))
    }

    /// Sends a request and waits for the answer.
    func ask(_ method: String, _ parameters: Value = [:]) -> Value? {
        request(method, parameters)
        return answer()
    }

    /// Waits until an answer begins, and reads none of it.
    func waitForAnswer() {
        var first: UInt8 = 0
        recv(descriptor, &first, 1, Int32(MSG_PEEK))
    }

    func endInput() { shutdown(descriptor, Int32(SHUT_WR)) }
    func hangUp() { shutdown(descriptor, Int32(SHUT_RDWR)) }

    /// Whether something can be read, at once or within a time.
    func hasAnswer(within time: Duration) -> Bool {
        var polled = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
        return received.withLock { !$0.isEmpty } || poll(&polled, 1, CInt(time / .milliseconds(1))) > 0
    }

    /// The next line; nil if the connection ends or nothing arrives for ten minutes.
    func answer() -> Value? {
        received.withLock { received in
            var searched = 0
            var chunk = [UInt8](repeating: 0, count: 1 << 20)
            while true {
                if let end = received[searched...].firstIndex(of: UInt8(ascii: "\n")) {
                    defer { received.removeFirst(end + 1) }
                    return try? Value(json: String(decoding: received[..<end], as: UTF8.self))
                }
                searched = received.count
                let count = recv(descriptor, &chunk, chunk.count, 0)
                guard count > 0 else { return nil }
                received += chunk[..<count]
            }
        }
    }
}
