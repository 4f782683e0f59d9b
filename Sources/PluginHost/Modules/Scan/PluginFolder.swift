import CDispatch
import Glibc
import PluginABI
import PluginFile

/// The files of a plugins folder that may be modules, or declare routes or services.
enum PluginFolder {
    /// One name in the folder.
    struct Entry: Sendable {
        /// Of a file in a folder below: with the names of the folders, `sub/a.so`.
        let name: String
        /// The folder's path and the name.
        let path: String
        /// Which file it is, links followed; or why that cannot be told, or the file not be read.
        let identity: Result<FileIdentity, PluginError>
        /// Whether it is a folder that cannot be looked into; nothing is known of what is in it.
        var isFolder = false
    }

    /// Whether a name in a plugins folder is looked at: it ends in `.so` or is that of a file of routes or services,
    /// and is not hidden.
    static func isCandidate(_ name: String) -> Bool {
        (name.hasSuffix(".so") || DeclarationFile.isNamed(name)) && !name.hasPrefix(".")
    }

    /// The entries whose names are those of modules or of files of routes or services and do not begin with a dot,
    /// sorted by name.
    ///
    /// - Parameters:
    ///   - includesSubfolders: Looks into the folders below, too. One that cannot be looked into is an entry, with the
    ///     reason; of what is in it nothing is known then.
    ///   - checksTrust: Refuses the folders below that others can write. The first one is for the caller to check.
    /// - Throws: `unreadable` if the folder does not exist, is no folder, or cannot be read. What is wrong with one
    ///   entry is carried by the entry.
    static func list(
        _ path: String, includesSubfolders: Bool = false, checksTrust: Bool = false
    ) throws(PluginError) -> [Entry] {
        var walk = FolderWalk(path, includesSubfolders: includesSubfolders)
        guard let first = walk.next() else {
            var status = stat()
            throw unreadable(path, stat(path, &status) == 0 ? ENOTDIR : errno)
        }
        var entries = candidates(try walk.read(first))
        while let folder = walk.next() {
            do throws(PluginError) {
                if checksTrust { try Trust.check(folder: folder.path) }
                entries += candidates(try walk.read(folder))
            } catch {
                entries.append(Entry(name: folder.name, path: folder.path, identity: .failure(error), isFolder: true))
            }
        }
        entries += walk.failures.map {
            Entry(name: $0.name, path: $0.path, identity: .failure($0.error), isFolder: true)
        }
        return entries.sorted { PathKey($0.name) < PathKey($1.name) }
    }

    private static func candidates(_ items: [FolderWalk.Item]) -> [Entry] {
        items.filter(isCandidate).map { item in
            Entry(name: item.name, path: item.path, identity: item.error.map { .failure($0) } ?? examine(item.path))
        }
    }

    /// Whether an item of a folder may be a module or a route file.
    static func isCandidate(_ item: FolderWalk.Item) -> Bool {
        item.error != nil || item.name.split(separator: "/").last.map { isCandidate(String($0)) } ?? false
    }

    /// The error of a folder that cannot be listed.
    static func unreadable(_ path: String, _ code: Int32) -> PluginError {
        let reason =
            switch code {
            case ENOENT: "does not exist. Create it, or name another one with --plugins."
            case ENOTDIR: "is not a folder. Name the folder that the modules lie in."
            case let code: "cannot be read: \(describe(errno: code))."
            }
        return PluginError(.unreadable, "The plugins folder \(path) \(reason)")
    }

    /// Which file it is, links followed, or why that cannot be told.
    static func examine(_ path: String) -> Result<FileIdentity, PluginError> {
        var status = stat()
        guard stat(path, &status) == 0, faccessat(AT_FDCWD, path, R_OK, AT_EACCESS) == 0 else {
            let code = errno
            let isLink = lstat(path, &status) == 0 && status.st_mode & S_IFMT == S_IFLNK
            let reason =
                switch code {
                case ENOENT where isLink: "is a link to a file that does not exist."
                case ENOENT: "does not exist."
                case ELOOP: "is a link that leads back to itself."
                case EACCES: "cannot be read by this user: Permission denied. Repair it with: chmod u+r '\(path)'"
                default: "cannot be read: \(describe(errno: code))."
                }
            return .failure(PluginError(.unreadable, "\(path) \(reason)"))
        }
        return .success(FileIdentity(status))
    }
}
