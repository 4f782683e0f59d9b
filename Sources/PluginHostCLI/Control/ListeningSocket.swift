internal import Glibc
internal import PluginABI

/// A Unix socket that this process listens on, whose file only this user can access.
struct ListeningSocket: Sendable {
    let path: String
    let descriptor: CInt
    /// The identity of the socket's file, which is checked before the file is removed.
    private let file: (device: dev_t, inode: ino_t)

    /// Creates the socket. Replaces the socket of a host that has ended, but not that of a running one, nor any other
    /// file.
    init(path: String) throws(PluginError) {
        guard !path.isEmpty, path.utf8.count <= UnixSocket.pathLimit, !path.utf8.contains(0) else {
            throw PluginError(
                .cannotListen,
                "The path of the socket has \(path.utf8.count) bytes, but the system allows only 1 to "
                    + "\(UnixSocket.pathLimit). Choose a path other than '\(path)'.")
        }
        // The lock makes two hosts that start at the same time take turns.
        let folder = Self.lockFolder(of: path)
        defer { close(folder) }
        try Self.removeStale(path)
        let descriptor = UnixSocket.make(flags: __socket_type(SOCK_CLOEXEC.rawValue | SOCK_NONBLOCK.rawValue))
        // The file gets its mode from the socket, so it never exists with another mode.
        guard descriptor >= 0, fchmod(descriptor, 0o600) == 0 else { throw Self.failure(path, errno) }
        let error = UnixSocket.bind(descriptor, to: path)
        guard error == 0, let file = fileStatus(path, followingLink: false), listen(descriptor, 64) == 0 else {
            let code = error == 0 ? errno : error
            close(descriptor)
            throw Self.failure(path, code)
        }
        (self.path, self.descriptor, self.file) = (path, descriptor, (file.st_dev, file.st_ino))
    }

    /// Stops listening and removes the file, unless another file has replaced it.
    func remove() {
        if let present = fileStatus(path, followingLink: false), (present.st_dev, present.st_ino) == file {
            unlink(path)
        }
        close(descriptor)
    }

    private static func removeStale(_ path: String) throws(PluginError) {
        guard let file = fileStatus(path, followingLink: false) else { return }
        guard file.st_mode & S_IFMT == S_IFSOCK else {
            throw PluginError(
                .cannotListen, "\(path) exists and is not a socket. Choose another path, or move the file away.")
        }
        let probe = UnixSocket.make(flags: __socket_type(SOCK_CLOEXEC.rawValue | SOCK_NONBLOCK.rawValue))
        defer { close(probe) }
        switch UnixSocket.connect(probe, to: path) {
        case ECONNREFUSED:
            guard unlink(path) == 0 else { throw failure(path, errno) }
        case 0, EAGAIN:
            throw PluginError(.cannotListen, "Another host already listens on \(path). Choose another path.")
        case let code:
            throw failure(path, code)
        }
    }

    /// Locks the folder of a path. Waits for at most a second: any process that can read the folder could keep it
    /// locked forever.
    private static func lockFolder(of path: String) -> CInt {
        let parent = path.lastIndex(of: "/").map { String(path[...$0]) } ?? "."
        let folder = open(parent, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        for _ in 0..<100 where folder >= 0 {
            if flock(folder, LOCK_EX | LOCK_NB) == 0 { break }
            usleep(10_000)
        }
        return folder
    }

    private static func failure(_ path: String, _ code: CInt) -> PluginError {
        PluginError(.cannotListen, "The socket \(path) cannot be created: \(String(cString: strerror(code))).")
    }
}
