import Foundation

/// A client of the control socket.
final class Client {
    private let descriptor: Int32

    /// Fails if the host does not accept a connection at once.
    init?(_ path: String) {
        descriptor = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue | SOCK_NONBLOCK.rawValue), 0)
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        let bytes = path.utf8CString
        guard descriptor >= 0, bytes.count <= MemoryLayout.size(ofValue: address.sun_path) else { return nil }
        withUnsafeMutableBytes(of: &address.sun_path) { destination in
            bytes.withUnsafeBytes { destination.copyMemory(from: $0) }
        }
        let size = socklen_t(MemoryLayout<sockaddr_un>.size)
        let isConnected = withUnsafePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { connect(descriptor, $0, size) == 0 }
        }
        guard isConnected else {
            close(descriptor)
            return nil
        }
    }

    deinit { close(descriptor) }

    /// Sends as much as the host accepts within the given time.
    @discardableResult
    func send(_ bytes: [UInt8], seconds: Double = 2) -> Int {
        let end = ContinuousClock.now + .seconds(seconds)
        var sent = 0
        while sent < bytes.count, ContinuousClock.now < end {
            let count = bytes.withUnsafeBytes {
                Glibc.send(
                    descriptor, $0.baseAddress! + sent, bytes.count - sent,
                    Int32(MSG_DONTWAIT) | Int32(MSG_NOSIGNAL))
            }
            if count > 0 {
                sent += count
            } else if count < 0, errno == EAGAIN {
                wait(for: POLLOUT, milliseconds: 20)
            } else {
                break
            }
        }
        return sent
    }

    /// The next line of an answer; nil if none arrives in time or the host closes the connection.
    func line(seconds: Double) -> String? {
        let end = ContinuousClock.now + .seconds(seconds)
        var line: [UInt8] = []
        while ContinuousClock.now < end {
            var byte: UInt8 = 0
            let count = recv(descriptor, &byte, 1, Int32(MSG_DONTWAIT))
            if count == 1 {
                if byte == 0x0A { return String(decoding: line, as: UTF8.self) }
                line.append(byte)
            } else if count == 0 || errno != EAGAIN {
                return nil
            } else {
                wait(for: POLLIN, milliseconds: 20)
            }
        }
        return nil
    }

    /// Sends one request.
    static func ask(_ path: String, _ method: String, _ parameters: String = "{}", seconds: Double) -> String? {
        guard let client = Client(path) else { return nil }
        client.send(Array("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"\(method)\",\"params\":\(parameters)}\n".utf8))
        return client.line(seconds: seconds)
    }

    private func wait(for events: Int32, milliseconds: Int32) {
        var polled = pollfd(fd: descriptor, events: Int16(events), revents: 0)
        poll(&polled, 1, milliseconds)
    }
}
