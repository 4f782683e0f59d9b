import CDispatch
import Glibc
import PluginABI
import PluginFile

/// Checks who could have written a file or folder, or could change where a path leads to: code is opened only if
/// nobody but root and the user that the process runs as could.
enum Trust {
    /// Checks a folder of modules: its owner, its mode, and that nobody else can replace it, a folder above it, or a
    /// symbolic link on the way to it.
    ///
    /// - Throws: `untrusted`, with who could write; `unreadable` if it does not exist.
    static func check(folder path: String) throws(PluginError) {
        let end = try follow(path)
        try check(status: try status(of: end), path: end, above: nil)
    }

    /// Checks that nobody else can replace what a path leads to: each folder and each symbolic link on the way. The file
    /// itself is for ``check(fileDescriptor:path:)``, when it is open.
    ///
    /// - Throws: `untrusted`, with who could write; `unreadable` if it does not exist.
    static func check(wayTo path: String) throws(PluginError) { _ = try follow(path) }

    /// Checks a file that is open: its owner and its mode.
    ///
    /// - Throws: `untrusted`, with who could write.
    static func check(fileDescriptor: Int32, path: String) throws(PluginError) {
        var status = stat()
        guard fstat(fileDescriptor, &status) == 0 else {
            throw PluginError(.unreadable, "\(path) cannot be examined: \(describe(errno: errno)).")
        }
        try check(status: status, path: path, above: nil)
    }

    /// How many symbolic links a path may lead through, as for the kernel.
    private static let linkLimit = 40

    /// Goes along a path name by name, as the kernel does, and checks each folder in which a name is looked up. Returns
    /// where it ends, without links.
    private static func follow(_ path: String) throws(PluginError) -> String {
        var rest = path.utf8.split(separator: slash).map { String(Substring($0)) }[...]
        var here = "/"
        if path.utf8.first != slash {
            guard let folder = realpath(".", nil) else { throw unreadable(path, errno) }
            defer { free(folder) }
            rest = String(cString: folder).utf8.split(separator: slash).map { String(Substring($0)) } + rest
        }
        var links = 0
        try check(status: try status(of: here), path: here, above: path)
        while let name = rest.popFirst() {
            if name == "." { continue }
            if name == ".." {
                here = folder(of: here)
                continue
            }
            let next = here == "/" ? "/\(name)" : "\(here)/\(name)"
            var status = stat()
            guard lstat(next, &status) == 0 else { throw unreadable(path, errno) }
            if status.st_mode & S_IFMT == S_IFLNK {
                try check(owner: status, path: next, above: path)
                links += 1
                guard links <= linkLimit, let target = target(of: next) else {
                    throw unreadable(path, links <= linkLimit ? errno : ELOOP)
                }
                if target.utf8.first == slash { here = "/" }
                rest = target.utf8.split(separator: slash).map { String(Substring($0)) } + rest
                continue
            }
            here = next
            // Of a file, and of the folder that is asked about, more is said by who asks.
            if !rest.isEmpty { try check(status: status, path: here, above: path) }
        }
        return here
    }

    private static let slash = UInt8(ascii: "/")

    private static func folder(of path: String) -> String {
        guard let end = path.utf8.lastIndex(of: slash), end != path.startIndex else { return "/" }
        return String(path[..<end])
    }

    private static func target(of link: String) -> String? {
        withUnsafeTemporaryAllocation(of: CChar.self, capacity: Int(PATH_MAX) + 1) { buffer in
            let count = readlink(link, buffer.baseAddress!, Int(PATH_MAX))
            guard count > 0 else { return nil }
            buffer[count] = 0
            // Sound: the line above ends the text.
            return buffer.baseAddress.map { String(cString: $0) }
        }
    }

    private static func status(of path: String) throws(PluginError) -> stat {
        var status = stat()
        guard stat(path, &status) == 0 else {
            throw PluginError(.unreadable, "\(path) cannot be examined: \(describe(errno: errno)).")
        }
        return status
    }

    private static func unreadable(_ path: String, _ code: Int32) -> PluginError {
        PluginError(.unreadable, "\(path) cannot be opened: \(describe(errno: code)).")
    }

    /// `above` is what is asked about where `path` is a folder on the way to it: in a sticky one (/tmp) others cannot
    /// replace what is not theirs.
    static func check(status: stat, path: String, above: String?) throws(PluginError) {
        try check(owner: status, path: path, above: above)
        if above != nil, status.st_mode & S_ISVTX != 0 { return }
        let mode = "0" + String(status.st_mode & 0o7777, radix: 8)
        guard status.st_mode & 0o022 == 0 else {
            let who = status.st_mode & 0o002 != 0 ? "anybody" : "group gid \(status.st_gid)"
            throw PluginError(
                .untrusted,
                "\(path) has mode \(mode): \(who) can write it\(reason(above)). Repair it with: chmod go-w '\(path)'; or "
                    + "allow it with --trust.")
        }
    }

    private static func check(owner status: stat, path: String, above: String?) throws(PluginError) {
        guard status.st_uid == 0 || status.st_uid == geteuid() else {
            throw PluginError(
                .untrusted,
                "\(path) belongs to another user (owner uid \(status.st_uid), expected \(geteuid()) or 0), who can "
                    + "write it\(reason(above)). Change its owner (chown), or allow it with --trust.")
        }
    }

    private static func reason(_ above: String?) -> String {
        above.map { ", and so could replace \($0)" } ?? ""
    }
}

/// Folders on whose way nobody else can change anything, each checked once.
struct TrustedFolders {
    private var checked: Set<PathKey> = []

    /// Checks the way to a file that lies in a folder which was checked before: what it leads to if it is a link.
    ///
    /// - Throws: `untrusted`; `unreadable` if it does not exist.
    mutating func check(linkAt path: String) throws(PluginError) {
        if isLink(path) { try Trust.check(wayTo: path) }
    }

    /// Checks the way to a file.
    ///
    /// - Throws: `untrusted`; `unreadable` if it does not exist.
    mutating func check(fileAt path: String) throws(PluginError) {
        let end = path.utf8.lastIndex(of: UInt8(ascii: "/")) ?? path.startIndex
        if checked.insert(String(path[..<end])) || isLink(path) { try Trust.check(wayTo: path) }
    }

    private func isLink(_ path: String) -> Bool {
        var status = stat()
        return lstat(path, &status) == 0 && status.st_mode & S_IFMT == S_IFLNK
    }
}
