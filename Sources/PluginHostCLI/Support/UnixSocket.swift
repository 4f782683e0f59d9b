internal import CPluginHost
internal import Glibc

/// The system calls on Unix stream sockets.
enum UnixSocket {
    static func make(flags: __socket_type = SOCK_CLOEXEC) -> CInt {
        socket(AF_UNIX, CInt(SOCK_STREAM.rawValue | flags.rawValue), 0)
    }

    /// Connects a socket, like `connect`. Returns 0, or the error number of `connect`.
    static func connect(_ descriptor: CInt, to path: String) -> CInt {
        while true {
            let error = withAddress(of: path) { Glibc.connect(descriptor, $0, $1) }
            if error != EINTR { return error }
        }
    }

    /// Limits how long connecting and each sending waits for the other end. After that, they return `EAGAIN`.
    static func limitWaiting(_ descriptor: CInt, to time: Duration) {
        _ = plugin_host_limit_sending(descriptor, Int64(time / .microseconds(1)))
    }

    /// Binds a socket, like `bind`. Returns 0, or the error number of `bind`.
    static func bind(_ descriptor: CInt, to path: String) -> CInt {
        withAddress(of: path) { Glibc.bind(descriptor, $0, $1) }
    }

    /// Writes a whole text, waiting for the reader to make room. Returns 0, or the error number of `send`. Raises no
    /// signal if the other end is closed.
    static func send(_ text: String, to descriptor: CInt) -> CInt {
        var rest = Array(text.utf8)[...]
        while !rest.isEmpty {
            let count = rest.withUnsafeBytes { Glibc.send(descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL)) }
            if count > 0 { rest.removeFirst(count) } else if errno != EINTR { return errno }
        }
        return 0
    }

    /// The maximum length of a socket's path, in bytes.
    static let pathLimit = MemoryLayout.size(ofValue: sockaddr_un().sun_path) - 1

    private static func withAddress(of path: String, _ call: (UnsafePointer<sockaddr>, socklen_t) -> CInt) -> CInt {
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        guard !path.isEmpty, path.utf8.count <= pathLimit else { return ENAMETOOLONG }
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path.utf8) }
        return withUnsafePointer(to: &address) { pointer in
            // The C functions take all kinds of addresses as this pointer type.
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                call($0, socklen_t(MemoryLayout<sockaddr_un>.size)) == 0 ? 0 : errno
            }
        }
    }

    /// Returns whether the program at the other end runs as this user or as root.
    static func hasTrustedPeer(_ descriptor: CInt) -> Bool {
        var peer = PeerCredentials()
        var size = socklen_t(MemoryLayout<PeerCredentials>.size)
        guard getsockopt(descriptor, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 else { return false }
        return peer.user == geteuid() || peer.user == 0
    }

    /// The counterpart of `struct ucred`, which Glibc's headers hide from Swift.
    private struct PeerCredentials {
        var process: pid_t = 0
        var user = uid_t.max
        var group = gid_t.max
    }
}
