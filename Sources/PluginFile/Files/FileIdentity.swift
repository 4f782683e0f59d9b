package import Glibc

/// Which file it is, and in which state: changes whenever the file is replaced or written.
package struct FileIdentity: Hashable, Sendable, Codable {
    package let device: UInt64
    package let inode: UInt64
    /// In bytes.
    package let size: Int64
    /// When its content was last written, in nanoseconds since 1970.
    package let modified: Int64
    /// When it or its permissions last changed, in nanoseconds since 1970.
    package let changed: Int64

    package init(_ status: stat) {
        device = UInt64(status.st_dev)
        inode = UInt64(status.st_ino)
        size = Int64(status.st_size)
        modified = Self.nanoseconds(status.st_mtim)
        changed = Self.nanoseconds(status.st_ctim)
    }

    /// Whether it changed so short a time ago that another change might show the same times: file systems take them from
    /// a clock that ticks every few milliseconds. (What git calls racily clean.)
    package var isRecent: Bool {
        var now = timespec()
        clock_gettime(CLOCK_REALTIME, &now)
        return Self.nanoseconds(now) &- changed < 20_000_000
    }

    /// Wraps around for a time that no clock can show, instead of trapping.
    private static func nanoseconds(_ time: timespec) -> Int64 {
        Int64(time.tv_sec) &* 1_000_000_000 &+ Int64(time.tv_nsec)
    }
}

/// What a file is, by the type in its mode: "a folder".
package func fileKind(mode: mode_t) -> String {
    switch mode & S_IFMT {
    case S_IFREG: "a regular file"
    case S_IFDIR: "a folder"
    case S_IFIFO: "a FIFO"
    case S_IFSOCK: "a socket"
    case S_IFBLK, S_IFCHR: "a device"
    case S_IFLNK: "a symbolic link"
    default: "no regular file"
    }
}

/// What an error number means, for people: "No such file or directory".
package func describe(errno code: Int32) -> String { String(cString: strerror(code)) }
