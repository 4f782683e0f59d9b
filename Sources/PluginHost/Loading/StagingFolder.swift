internal import CPluginHost
internal import Foundation
internal import Glibc
internal import PluginABI

/// The private folder of one host process, in a base folder that all hosts of one user share.
///
/// A `lock` file in it is held as long as the process lives. So what a host that died left behind can be told from
/// what another one uses, and is removed.
struct StagingFolder: Sendable {
    let path: String
    private let lock: Int32

    /// - Parameter base: Where to make it; nil for the default: `$XDG_RUNTIME_DIR/pluginhost`, else
    ///   `$TMPDIR/pluginhost-<uid>`, else a fresh folder in `$TMPDIR`.
    /// - Throws: `stagingFailed`.
    init(base: String?) throws(PluginError) {
        let base = if let base { base } else { try Self.defaultBase() }
        guard Self.prepare(base) else {
            throw PluginError(
                .stagingFailed,
                "\(base) cannot be used for the copies of modules: it must be a folder of this user, with mode 0700, on "
                    + "a file system that allows programs (not noexec).")
        }
        Self.removeAbandoned(in: base)
        path = try Self.makeTemporary("\(base)/host-XXXXXX")
        // Locked before it gets its name, so that nobody ever sees it without its lock.
        let name = "\(path)/lock"
        lock = open("\(name).new", O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
        guard lock >= 0, flock(lock, LOCK_EX | LOCK_NB) == 0, rename("\(name).new", name) == 0 else {
            let code = errno
            if lock >= 0 { Glibc.close(lock) }
            try? FileManager.default.removeItem(atPath: path)
            throw PluginError(.stagingFailed, "\(name) cannot be locked: \(describe(errno: code)).")
        }
    }

    /// Removes the folder and gives up the lock. Libraries that are mapped from it stay usable.
    func remove() {
        try? FileManager.default.removeItem(atPath: path)
        Glibc.close(lock)
    }

    private static func defaultBase() throws(PluginError) -> String {
        let environment = ProcessInfo.processInfo.environment
        if let runtime = environment["XDG_RUNTIME_DIR"], runtime.hasPrefix("/"), prepare("\(runtime)/pluginhost") {
            return "\(runtime)/pluginhost"
        }
        let temporary = environment["TMPDIR"].flatMap { $0.hasPrefix("/") ? $0 : nil } ?? "/tmp"
        let own = "\(temporary)/pluginhost-\(geteuid())"
        // Somebody else may have taken the name.
        return prepare(own) ? own : try makeTemporary("\(temporary)/pluginhost-XXXXXX")
    }

    /// Makes the folder where it is missing, and says whether it is ours alone and can hold libraries.
    private static func prepare(_ path: String) -> Bool {
        if mkdir(path, 0o700) == 0 { chmod(path, 0o700) }
        var status = stat()
        return lstat(path, &status) == 0 && status.st_mode & S_IFMT == S_IFDIR && status.st_uid == geteuid()
            && status.st_mode & 0o777 == 0o700
            && plugin_host_allows_libraries(path) == 1
    }

    private static func makeTemporary(_ pattern: String) throws(PluginError) -> String {
        var name = Array(pattern.utf8CString)
        guard mkdtemp(&name) != nil else {
            throw PluginError(
                .stagingFailed, "No folder can be made by the pattern \(pattern): \(describe(errno: errno)).")
        }
        return String(decoding: name.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }

    /// Removes the folders of hosts that died: those whose lock can be had. One without a lock is being made, or its
    /// maker died over it an hour ago.
    private static func removeAbandoned(in base: String) {
        let files = FileManager.default
        for name in (try? files.contentsOfDirectory(atPath: base)) ?? [] where name.hasPrefix("host-") {
            let folder = "\(base)/\(name)"
            let lock = open("\(folder)/lock", O_RDWR | O_CLOEXEC | O_NOFOLLOW)
            if lock >= 0 {
                if flock(lock, LOCK_EX | LOCK_NB) == 0 { try? files.removeItem(atPath: folder) }
                Glibc.close(lock)
            } else {
                var status = stat()
                guard errno == ENOENT, stat(folder, &status) == 0, time(nil) - status.st_mtim.tv_sec > 3600 else {
                    continue
                }
                try? files.removeItem(atPath: folder)
            }
        }
    }
}
