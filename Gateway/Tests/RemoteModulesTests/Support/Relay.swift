import Foundation
import Synchronization

/// A balancer of connections: each goes to the next of several ports that accepts it.
final class Relay: Sendable {
    private struct State {
        var ports: [Int]
        var next = 0
        /// The descriptors of the connections by port, on both sides.
        var open: [Int: Set<Int32>] = [:]
    }

    let port: Int
    private let descriptor: Int32
    private let state: Mutex<State>

    init(_ ports: [Int]) throws {
        state = Mutex(State(ports: ports))
        let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        self.descriptor = descriptor
        var address = Self.address(0)
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let isListening = withUnsafeMutablePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                bind(descriptor, $0, length) == 0 && listen(descriptor, 64) == 0
                    && getsockname(descriptor, $0, &length) == 0
            }
        }
        guard isListening else { throw POSIXError(.EADDRINUSE) }
        port = Int(UInt16(bigEndian: address.sin_port))
        Thread.detachNewThread { [self] in acceptAll() }
    }

    /// Closes all connections to a port, and makes no new ones.
    func cut(_ port: Int) {
        state.withLock { state in
            state.ports.removeAll { $0 == port }
            for descriptor in state.open[port] ?? [] { shutdown(descriptor, Int32(SHUT_RDWR)) }
        }
    }

    func end() {
        for port in state.withLock(\.ports) { cut(port) }
        shutdown(descriptor, Int32(SHUT_RDWR))
    }

    private static func address(_ port: Int) -> sockaddr_in {
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = in_port_t(port).bigEndian
        address.sin_addr.s_addr = inet_addr("127.0.0.1")
        return address
    }

    private func acceptAll() {
        while true {
            let client = accept(descriptor, nil, nil)
            guard client >= 0 else { break }
            guard let (server, port) = connectNext(with: client) else {
                close(client)
                continue
            }
            let halves = Halves(2)
            for (from, to) in [(client, server), (server, client)] {
                Thread.detachNewThread { [self] in
                    copy(from, to)
                    guard halves.end() else { return }
                    state.withLock { _ = $0.open[port]?.subtract([client, server]) }
                    close(client)
                    close(server)
                }
            }
        }
        close(descriptor)
    }

    private final class Halves: Sendable {
        private let count: Mutex<Int>
        init(_ count: Int) { self.count = Mutex(count) }

        /// Ends one direction, and returns whether it was the last one.
        func end() -> Bool {
            count.withLock { count in
                count -= 1
                return count == 0
            }
        }
    }

    private func connectNext(with client: Int32) -> (server: Int32, port: Int)? {
        state.withLock { state in
            for _ in state.ports {
                let port = state.ports[state.next % state.ports.count]
                state.next += 1
                let server = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
                var address = Self.address(port)
                let status = withUnsafePointer(to: &address) {
                    $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                        connect(server, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
                    }
                }
                if status == 0 {
                    state.open[port, default: []].formUnion([client, server])
                    return (server, port)
                }
                close(server)
            }
            return nil
        }
    }

    private func copy(_ from: Int32, _ to: Int32) {
        var buffer = [UInt8](repeating: 0, count: 65_536)
        while true {
            let count = recv(from, &buffer, buffer.count, 0)
            guard count > 0 else { break }
            var sent = 0
            while sent < count {
                let part = buffer[sent..<count].withUnsafeBytes {
                    send(to, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL))
                }
                guard part > 0 else { return end(from, to) }
                sent += part
            }
        }
        end(from, to)
    }

    private func end(_ from: Int32, _ to: Int32) {
        shutdown(from, Int32(SHUT_RDWR))
        shutdown(to, Int32(SHUT_RDWR))
    }
}
