internal import Glibc
internal import PluginABI

/// Who could have written a file or folder: code in the process is opened only if nobody but root and the user that
/// the process runs as could.
enum Trust {
    /// Checks a folder of modules: its owner, its mode, and that nobody else can replace it or a folder above it.
    /// Symbolic links are resolved first.
    ///
    /// - Throws: `untrusted`, with who could write; `unreadable` if it does not exist.
    static func check(folder path: String) throws(PluginError) {
        guard let resolved = realpath(path, nil) else {
            throw PluginError(.unreadable, "\(path) cannot be opened: \(describe(errno: errno)).")
        }
        var folder = String(cString: resolved)
        free(resolved)
        try check(status: try status(of: folder), path: folder, above: nil)
        let start = folder
        while folder != "/" {
            folder = folder.lastIndex(of: "/").map { $0 == folder.startIndex ? "/" : String(folder[..<$0]) } ?? "/"
            try check(status: try status(of: folder), path: folder, above: start)
        }
    }

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

    private static func status(of path: String) throws(PluginError) -> stat {
        var status = stat()
        guard stat(path, &status) == 0 else {
            throw PluginError(.unreadable, "\(path) cannot be examined: \(describe(errno: errno)).")
        }
        return status
    }

    /// `above` is the folder that is asked about where `path` is one above it: in a sticky one (/tmp) others cannot
    /// replace what is not theirs.
    static func check(status: stat, path: String, above: String?) throws(PluginError) {
        let reason = above.map { ", and so could replace \($0)" } ?? ""
        guard status.st_uid == 0 || status.st_uid == geteuid() else {
            throw PluginError(
                .untrusted,
                "\(path) belongs to another user (owner uid \(status.st_uid), expected \(geteuid()) or 0), who can "
                    + "write it\(reason). Change its owner (chown), or allow it with --trust.")
        }
        if above != nil, status.st_mode & S_ISVTX != 0 { return }
        let mode = "0" + String(status.st_mode & 0o7777, radix: 8)
        guard status.st_mode & 0o022 == 0 else {
            let who = status.st_mode & 0o002 != 0 ? "anybody" : "group gid \(status.st_gid)"
            throw PluginError(
                .untrusted,
                "\(path) has mode \(mode): \(who) can write it\(reason). Repair it with: chmod go-w '\(path)'; or allow "
                    + "it with --trust.")
        }
    }
}
