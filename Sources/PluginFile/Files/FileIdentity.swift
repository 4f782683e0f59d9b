package import Glibc

/// The identity and the state of a file, which change whenever the file is replaced or written.
package struct FileIdentity: Hashable, Sendable, Codable {
    package let device: UInt64
    package let inode: UInt64
    /// The size in bytes.
    package let size: Int64
    /// The time when the file's content was last written, in nanoseconds since 1970.
    package let modified: Int64
    /// The time when the file's content or metadata last changed, in nanoseconds since 1970.
    package let changed: Int64

    package init(_ status: stat) {
        device = UInt64(status.st_dev)
        inode = UInt64(status.st_ino)
        size = Int64(status.st_size)
        modified = Self.nanoseconds(status.st_mtim)
        changed = Self.nanoseconds(status.st_ctim)
    }

    package init(device: UInt64, inode: UInt64, size: Int64, modified: Int64, changed: Int64) {
        (self.device, self.inode, self.size) = (device, inode, size)
        (self.modified, self.changed) = (modified, changed)
    }

    /// An identity that no file has, for a module that does not come from a file.
    package static let none = FileIdentity(stat())

    /// Reads the identity of the file at a path, following links; `nil` if it cannot be read.
    package init?(path: String) {
        var status = stat()
        guard stat(path, &status) == 0 else { return nil }
        self.init(status)
    }

    /// Whether the file has changed so recently that another change could leave the same times: file systems use a
    /// clock that ticks every few milliseconds. (git calls this "racily clean".)
    package var isRecent: Bool {
        var now = timespec()
        clock_gettime(CLOCK_REALTIME, &now)
        return Self.nanoseconds(now) &- changed < 20_000_000
    }

    /// Returns a time in nanoseconds. Wraps around, instead of trapping, for a time that is out of range.
    private static func nanoseconds(_ time: timespec) -> Int64 {
        Int64(time.tv_sec) &* 1_000_000_000 &+ Int64(time.tv_nsec)
    }
}

/// Returns the kind of file that a mode describes, for people: "a folder".
package func fileKind(mode: mode_t) -> String {
    switch mode & S_IFMT {
    case S_IFREG: "a regular file"
    case S_IFDIR: "a folder"
    case S_IFIFO: "a FIFO"
    case S_IFSOCK: "a socket"
    case S_IFBLK, S_IFCHR: "a device"
    case S_IFLNK: "a symbolic link"
    default: "of an unknown kind"
    }
}

/// Returns the meaning of an error number for people: "No such file or directory".
package func describe(errno code: Int32) -> String { String(cString: strerror(code)) }
