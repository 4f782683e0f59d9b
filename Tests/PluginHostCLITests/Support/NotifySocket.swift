import Foundation
import Glibc

/// The socket of a service manager, which receives what services report.
final class NotifySocket {
    /// The value of `NOTIFY_SOCKET`.
    let address: String
    private let descriptor: Int32

    /// - Parameter address: A path, or `@` and an abstract name.
    init(_ address: String) throws {
        self.address = address
        descriptor = socket(AF_UNIX, Int32(SOCK_DGRAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        var target = sockaddr_un()
        target.sun_family = sa_family_t(AF_UNIX)
        var bytes = Array(address.utf8)
        if bytes[0] == UInt8(ascii: "@") { bytes[0] = 0 }
        withUnsafeMutableBytes(of: &target.sun_path) { $0.copyBytes(from: bytes) }
        let length = MemoryLayout<sa_family_t>.size + bytes.count + (address.hasPrefix("/") ? 1 : 0)
        let isBound = withUnsafePointer(to: &target) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { bind(descriptor, $0, socklen_t(length)) == 0 }
        }
        guard descriptor >= 0, isBound else { throw POSIXError(.EADDRINUSE) }
    }

    deinit { close(descriptor) }

    /// Returns the next message that begins with a text; nil if none arrives within a minute.
    func message(_ beginning: String) -> String? {
        while true {
            var ready = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
            guard poll(&ready, 1, 60_000) > 0 else { return nil }
            var bytes = [UInt8](repeating: 0, count: 4096)
            let count = recv(descriptor, &bytes, bytes.count, 0)
            guard count > 0 else { return nil }
            let text = String(decoding: bytes[..<count], as: UTF8.self)
            if text.hasPrefix(beginning) { return text }
        }
    }
}
