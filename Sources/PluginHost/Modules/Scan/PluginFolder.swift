import CDispatch
import Glibc
package import PluginABI
import PluginFile

/// The files of a plugins folder that may be modules, or declare routes or services.
package enum PluginFolder {
    /// One entry of a plugins folder.
    struct Entry: Sendable {
        /// The file name; for a file in a subfolder the path relative to the plugins folder, such as `sub/a.so`.
        let name: String
        /// The folder's path followed by the name.
        let path: String
        /// The identity of the file that the path leads to, with links followed; or the reason why it is unknown or the
        /// file cannot be read.
        let identity: Result<FileIdentity, PluginError>
        /// Whether the entry is a folder that cannot be read, so that its files are unknown.
        var isFolder = false
    }

    /// Returns whether a file with this name is scanned: the name ends in `.so` or is that of a route or service file,
    /// and is not hidden.
    static func isCandidate(_ name: String) -> Bool {
        (name.hasSuffix(".so") || DeclarationFile.isNamed(name)) && !name.hasPrefix(".")
    }

    /// Returns the entries whose names are those of modules or of route or service files and do not begin with a dot,
    /// sorted by name.
    ///
    /// - Parameters:
    ///   - includesSubfolders: Whether subfolders are read, too. A subfolder that cannot be read becomes an entry that
    ///     carries the reason.
    ///   - checksTrust: Whether subfolders that other users can write are rejected. The caller checks the first folder.
    /// - Throws: `unreadable` if `path` does not exist, is not a folder, or cannot be read. An error that concerns a
    ///   single entry is stored in the entry.
    static func list(
        _ path: String, includesSubfolders: Bool = false, checksTrust: Bool = false
    ) throws(PluginError) -> [Entry] {
        var walk = FolderWalk(path, includesSubfolders: includesSubfolders)
        guard let first = walk.next() else {
            var status = stat()
            throw unreadable(path, stat(path, &status) == 0 ? ENOTDIR : errno)
        }
        var entries = candidates(try walk.read(first, identifying: true))
        while let folder = walk.next() {
            do throws(PluginError) {
                if checksTrust { try Trust.check(folder: folder.path) }
                entries += candidates(try walk.read(folder, identifying: true))
            } catch {
                entries.append(Entry(name: folder.name, path: folder.path, identity: .failure(error), isFolder: true))
            }
        }
        entries += walk.failures.map {
            Entry(name: $0.name, path: $0.path, identity: .failure($0.error), isFolder: true)
        }
        return entries.sorted(byBytesOf: \.name)
    }

    /// Returns the paths of the files in a folder that may be modules, sorted by their names: those that a host scans.
    ///
    /// - Parameter includesSubfolders: Whether subfolders are read, too.
    /// - Throws: `unreadable` if the folder, one of the subfolders or one of the files cannot be read.
    package static func libraries(in path: String, includesSubfolders: Bool) throws(PluginError) -> [String] {
        var paths: [String] = []
        for entry in try list(path, includesSubfolders: includesSubfolders) where !DeclarationFile.isNamed(entry.name) {
            _ = try entry.identity.get()
            paths.append(entry.path)
        }
        return paths
    }

    private static func candidates(_ items: [FolderWalk.Item]) -> [Entry] {
        var entries: [Entry] = []
        entries.reserveCapacity(items.count)
        for item in items where item.isCandidate {
            let identity: Result<FileIdentity, PluginError> =
                if let identity = item.identity {
                    .success(identity)
                } else {
                    item.error.map { .failure($0) } ?? examine(item.path)
                }
            entries.append(Entry(name: item.name, path: item.path, identity: identity))
        }
        return entries
    }

    /// What was found under the name of a file.
    enum Finding {
        case present(Entry)
        case absent
        /// The folder must be walked to find out.
        case unclear
    }

    /// Looks for one file.
    ///
    /// - Parameter mayBeFolder: Whether a folder, or a link to one, counts as a file.
    static func entry(_ name: String, _ path: String, mayBeFolder: Bool) -> Finding {
        var status = stat()
        guard lstat(path, &status) == 0 else { return errno == ENOENT ? .absent : .unclear }
        guard mayBeFolder || status.st_mode & S_IFMT == S_IFREG else { return .unclear }
        return .present(Entry(name: name, path: path, identity: examine(path)))
    }

    /// Returns the error for a folder that cannot be listed.
    static func unreadable(_ path: String, _ code: Int32) -> PluginError {
        let reason =
            switch code {
            case ENOENT: "does not exist. Create it, or name another one with --plugins."
            case ENOTDIR: "is not a folder. Name the folder that contains the modules."
            case let code: "cannot be read: \(describe(errno: code))."
            }
        return PluginError(.unreadable, "The plugins folder \(path) \(reason)")
    }

    /// Returns the identity of the file that a path leads to, with links followed, or the reason why it cannot be read.
    static func examine(_ path: String) -> Result<FileIdentity, PluginError> {
        var status = stat()
        guard stat(path, &status) == 0, faccessat(AT_FDCWD, path, R_OK, AT_EACCESS) == 0 else {
            let (code, isLink) = (errno, isLink(path))
            let reason =
                switch code {
                case ENOENT where isLink: "is a link to a file that does not exist."
                case ENOENT: "does not exist."
                case ELOOP: "is a link that leads back to itself."
                case EACCES: "cannot be read by this user: Permission denied. To repair this, run: chmod u+r '\(path)'"
                default: "cannot be read: \(describe(errno: code))."
                }
            return .failure(PluginError(.unreadable, "\(path) \(reason)"))
        }
        return .success(FileIdentity(status))
    }

    /// Returns whether a path itself, with links along it followed, is a symbolic link.
    static func isLink(_ path: String) -> Bool {
        var status = stat()
        return lstat(path, &status) == 0 && status.st_mode & S_IFMT == S_IFLNK
    }
}
