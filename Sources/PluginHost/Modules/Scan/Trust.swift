import CDispatch
import CPluginHost
import Glibc
import PluginABI
import PluginFile

/// The trust checks: which users can write a file or folder, or can change what a path leads to. Code is opened only if
/// no users other than root and the process's effective user can do so.
enum Trust {
    /// Checks a plugins folder: its owner, its mode, and that no other user can replace it, a folder above it, or a
    /// symbolic link along its path.
    ///
    /// - Throws: `untrusted`, naming the user or group that can write; `unreadable` if the folder does not exist.
    static func check(folder path: String) throws(PluginError) {
        let end = try follow(path)
        try check(status: try status(of: end) { stat(end, &$0) }, path: end, above: nil)
    }

    /// Checks each folder and each symbolic link along a path: no other user may be able to replace what the path leads
    /// to. ``check(fileDescriptor:path:)`` checks the file itself once it is open.
    ///
    /// - Throws: `untrusted`, naming the user or group that can write; `unreadable` if the path leads to nothing.
    static func check(wayTo path: String) throws(PluginError) { _ = try follow(path) }

    /// Checks the owner and the mode of an open file.
    ///
    /// - Throws: `untrusted`, naming the user or group that can write; `unreadable` if the file cannot be examined.
    static func check(fileDescriptor: Int32, path: String) throws(PluginError) {
        try check(status: try status(of: path) { fstat(fileDescriptor, &$0) }, path: path, above: nil)
    }

    /// How many symbolic links a path may lead through. The kernel has the same limit.
    private static let linkLimit = 40

    /// Resolves a path name by name, as the kernel does, and checks each folder in which a name is looked up. Returns
    /// the path that it leads to, without links.
    private static func follow(_ path: String) throws(PluginError) -> String {
        var rest = path.utf8.split(separator: slash).map { String(Substring($0)) }[...]
        var here = "/"
        if path.utf8.first != slash {
            guard let folder = realpath(".", nil) else { throw unreadable(path, errno) }
            defer { free(folder) }
            rest = String(cString: folder).utf8.split(separator: slash).map { String(Substring($0)) } + rest
        }
        var links = 0
        try check(status: try status(of: here) { stat(here, &$0) }, path: here, above: path)
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
            // The caller checks the last component.
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
            // Sound: the line above terminates the string.
            return buffer.baseAddress.map { String(cString: $0) }
        }
    }

    private static func status(of path: String, _ read: (inout stat) -> Int32) throws(PluginError) -> stat {
        var status = stat()
        guard read(&status) == 0 else {
            throw PluginError(.unreadable, "\(path) cannot be examined: \(describe(errno: errno)).")
        }
        return status
    }

    private static func unreadable(_ path: String, _ code: Int32) -> PluginError {
        PluginError(.unreadable, "\(path) cannot be opened: \(describe(errno: code)).")
    }

    /// Checks the owner and the mode of a file or folder.
    ///
    /// - Parameter above: The path that is being resolved, if `path` is a folder along it; otherwise `nil`. In a sticky
    ///   folder (`/tmp`), users cannot replace one another's files, so the mode of a sticky folder along the path is
    ///   not checked.
    static func check(status: stat, path: String, above: String?) throws(PluginError) {
        try check(owner: status, path: path, above: above)
        if above != nil, status.st_mode & S_ISVTX != 0 { return }
        let mode = "0" + String(status.st_mode & 0o7777, radix: 8)
        guard status.st_mode & 0o022 == 0 else {
            let who = status.st_mode & 0o002 != 0 ? "anybody" : "group gid \(status.st_gid)"
            throw PluginError(
                .untrusted,
                "\(path) has mode \(mode): \(who) can write it\(reason(above)). To repair this, run: chmod go-w "
                    + "'\(path)'; or allow it with --trust.")
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
        above.map { " and could replace \($0)" } ?? ""
    }
}

/// The folders whose paths no other user can change. Each is checked once.
struct TrustedFolders {
    private var checked: Set<PathKey> = []

    /// Checks the path of a file in a folder that was already checked: where it leads if it is a link.
    ///
    /// - Throws: `untrusted`; `unreadable` if it does not exist.
    mutating func check(linkAt path: String) throws(PluginError) {
        if PluginFolder.isLink(path) { try Trust.check(wayTo: path) }
    }

    /// Checks the path of a file.
    ///
    /// - Throws: `untrusted`; `unreadable` if it does not exist.
    mutating func check(fileAt path: String) throws(PluginError) {
        let end = path.utf8.lastIndex(of: UInt8(ascii: "/")) ?? path.startIndex
        let folder = String(path[..<end])
        if checked.contains(folder), !PluginFolder.isLink(path) { return }
        try Trust.check(wayTo: path)
        checked.insert(folder)
    }

    /// Checks the path, the owner and the mode of a library that is not copied, so that the dynamic linker opens the
    /// original. A library that is already loaded is not opened again. If it does not exist, the dynamic linker reports
    /// it.
    ///
    /// - Parameter retry: Called once when the dynamic linker can tell whether an untrusted library is loaded, if an
    ///   overdue constructor keeps it from doing so now; see ``LibraryOpening``.
    /// - Throws: `untrusted`; `openFailed` if it cannot be told now.
    mutating func check(
        outside library: (name: String, path: String), neededBy module: String, _ retry: (@Sendable () -> Void)?
    ) throws(PluginError) {
        var status = stat()
        guard stat(library.path, &status) == 0 else { return }
        do throws(PluginError) {
            try check(fileAt: library.path)
            try Trust.check(status: status, path: library.path, above: nil)
        } catch {
            try LibraryOpening.requireFree(for: module, retry)
            guard plugin_host_loaded_library(library.name) == nil else { return }
            throw PluginError(
                error.code,
                "\(module) is not loaded, because of the library \(library.path) that it needs: \(error.message)")
        }
    }
}
