import CDispatch
import CPluginHost
import Foundation
import Glibc
import PluginABI
import PluginFile

/// The private folder of one host process, in a base folder that all hosts of one user share.
///
/// A `lock` file in it is held as long as the process lives. So what a host that died left behind can be told from
/// what another one uses, and is removed.
struct StagingFolder: Sendable {
    let path: String
    private let lock: Int32

    private static let lockName = "lock"
    private static let newLockName = "lock.new"

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
        (path, lock) = try Self.makeLocked(in: base)
    }

    /// Removes the folder and gives up the lock. Libraries that are mapped from it stay usable.
    func remove() {
        Self.remove(path)
        Glibc.close(lock)
    }

    /// Makes a folder, and locks a file in it before that gets its name: so a file `lock` that nobody holds means that
    /// the host of the folder died. Another host that cleans up may take the folder before the lock is held; then the
    /// next one is tried.
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
        throw PluginError(.stagingFailed, "No folder in \(base) can be locked: \(describe(errno: code)).")
    }

    private static func defaultBase() throws(PluginError) -> String {
        let environment = ProcessInfo.processInfo.environment
        if let runtime = environment["XDG_RUNTIME_DIR"], runtime.hasPrefix("/"), prepare("\(runtime)/pluginhost") {
            return "\(runtime)/pluginhost"
        }
        let temporary = environment["TMPDIR"].flatMap { $0.hasPrefix("/") ? $0 : nil } ?? "/tmp"
        let own = "\(temporary)/pluginhost-\(geteuid())"
        // Somebody else may have taken the name.
        return prepare(own) ? own : try makeTemporaryFolder("\(temporary)/pluginhost-XXXXXX")
    }

    /// Makes the folder where it is missing, and says whether it is ours alone and can hold libraries.
    private static func prepare(_ path: String) -> Bool {
        if mkdir(path, 0o700) == 0 { chmod(path, 0o700) }
        var status = stat()
        return lstat(path, &status) == 0 && status.st_mode & S_IFMT == S_IFDIR && status.st_uid == geteuid()
            && status.st_mode & 0o777 == 0o700
            && plugin_host_allows_libraries(path) == 1
    }

    /// Removes the folders of hosts that died: those that are empty, and those whose lock can be had.
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

    /// Removes a folder, its lock last: who dies over it leaves something that the next host removes.
    private static func remove(_ folder: String) {
        let files = FileManager.default
        for name in (try? files.contentsOfDirectory(atPath: folder)) ?? [] where name != lockName {
            try? files.removeItem(atPath: "\(folder)/\(name)")
        }
        try? files.removeItem(atPath: folder)
    }
}
