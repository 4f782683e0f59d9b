import CDispatch
import CPluginHost
import FoundationEssentials
import Glibc
import PluginABI
import PluginFile

/// The private folder of one host, in a base folder that all hosts of one user share.
///
/// A file `lock` in it stays locked until the folder is removed or the process ends. It distinguishes folders that
/// hosts left behind when they died, which are removed, from those in use.
struct StagingFolder: Sendable {
    let path: String
    private let lock: Int32

    private static let lockName = "lock"
    private static let newLockName = "lock.new"

    /// Creates the folder, and removes those of hosts that died.
    ///
    /// - Parameter base: The base folder; `nil` for the default: `$XDG_RUNTIME_DIR/pluginhost`, otherwise
    ///   `$TMPDIR/pluginhost-<uid>`, otherwise a new folder in `$TMPDIR`.
    /// - Throws: `stagingFailed`.
    init(base: String?) throws(PluginError) {
        let base = if let base { base } else { try Self.defaultBase() }
        guard Self.prepare(base) else {
            throw PluginError(
                .stagingFailed,
                "\(base) cannot be used for the copies of modules: it must be a folder owned by this user, with mode "
                    + "0700, on a file system that is not mounted noexec.")
        }
        Self.removeAbandoned(in: base)
        (path, lock) = try Self.makeLocked(in: base)
    }

    /// Removes the folder and unlocks it. Libraries that are mapped from it remain usable.
    func remove() {
        Self.remove(path)
        Glibc.close(lock)
    }

    /// Creates a folder, and locks a file in it before the file is renamed to `lock`. An unlocked file `lock` therefore
    /// means that the host of the folder died. Another host may remove the folder before the file is locked; then
    /// another folder is tried.
    private static func makeLocked(in base: String) throws(PluginError) -> (path: String, lock: Int32) {
        var code: Int32 = 0
        for _ in 0..<100 {
            let path = try makeTemporaryFolder("\(base)/host-XXXXXX")
            let lock = open("\(path)/\(newLockName)", O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
            if lock >= 0, flock(lock, LOCK_EX | LOCK_NB) == 0,
                rename("\(path)/\(newLockName)", "\(path)/\(lockName)") == 0
            {
                return (path, lock)
            }
            code = errno
            if lock >= 0 { Glibc.close(lock) }
            remove(path)
            guard code == ENOENT || code == EWOULDBLOCK else { break }
        }
        throw PluginError(.stagingFailed, "No folder can be locked in \(base): \(describe(errno: code)).")
    }

    private static func defaultBase() throws(PluginError) -> String {
        let environment = ProcessInfo.processInfo.environment
        if let runtime = environment["XDG_RUNTIME_DIR"], runtime.hasPrefix("/"), prepare("\(runtime)/pluginhost") {
            return "\(runtime)/pluginhost"
        }
        let own = "\(temporaryFolder)/pluginhost-\(geteuid())"
        // Another user may have created a folder of that name.
        return prepare(own) ? own : try makeTemporaryFolder("\(temporaryFolder)/pluginhost-XXXXXX")
    }

    /// Creates the folder if it is missing. Returns whether it belongs to this user alone and libraries can be loaded
    /// from it.
    private static func prepare(_ path: String) -> Bool {
        if mkdir(path, 0o700) == 0 { chmod(path, 0o700) }
        var status = stat()
        return lstat(path, &status) == 0 && status.st_mode & S_IFMT == S_IFDIR && status.st_uid == geteuid()
            && status.st_mode & 0o777 == 0o700
            && plugin_host_allows_libraries(path) == 1
    }

    /// Removes the folders of hosts that died: those that are empty, and those whose lock file is not locked.
    private static func removeAbandoned(in base: String) {
        let names = (try? FileManager.default.contentsOfDirectory(atPath: base)) ?? []
        for folder in names.filter({ $0.hasPrefix("host-") }).map({ "\(base)/\($0)" }) where rmdir(folder) != 0 {
            for name in [lockName, newLockName] {
                let lock = open("\(folder)/\(name)", O_RDWR | O_CLOEXEC | O_NOFOLLOW)
                guard lock >= 0 else { continue }
                if flock(lock, LOCK_EX | LOCK_NB) == 0 { remove(folder) }
                Glibc.close(lock)
                break
            }
        }
    }

    /// Removes a folder, its lock file last. If the process dies before the end, the next host removes the rest.
    private static func remove(_ folder: String) {
        let files = FileManager.default
        for name in (try? files.contentsOfDirectory(atPath: folder)) ?? [] where name != lockName {
            try? files.removeItem(atPath: "\(folder)/\(name)")
        }
        try? files.removeItem(atPath: folder)
    }
}
