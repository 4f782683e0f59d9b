internal import Glibc
internal import PluginABI

/// The files of a plugins folder that may be modules or route files.
enum PluginFolder {
    /// One name in the folder.
    struct Entry: Sendable {
        let name: String
        /// The folder's path and the name.
        let path: String
        /// Which file it is, links followed; or why that cannot be told, or the file not be read.
        let identity: Result<FileIdentity, PluginError>
    }

    /// Whether a name in a plugins folder is looked at: it ends in `.so` or is that of a route file, and is not hidden.
    static func isCandidate(_ name: String) -> Bool {
        (name.hasSuffix(".so") || RouteFile.isNamed(name)) && !name.hasPrefix(".")
    }

    /// The entries whose names are those of modules or route files and do not begin with a dot, sorted by name.
    ///
    /// - Parameter onlyLinks: Leaves out what is no symbolic link.
    /// - Throws: `unreadable` if the folder does not exist, is no folder, or cannot be read. What is wrong with one
    ///   entry is carried by the entry.
    static func list(_ path: String, onlyLinks: Bool = false) throws(PluginError) -> [Entry] {
        guard let folder = opendir(path) else {
            let reason =
                switch errno {
                case ENOENT: "does not exist. Create it, or name another one with --plugins."
                case ENOTDIR: "is not a folder. Name the folder that the modules lie in."
                case let code: "cannot be read: \(describe(errno: code))."
                }
            throw PluginError(.unreadable, "The plugins folder \(path) \(reason)")
        }
        defer { closedir(folder) }
        var entries: [Entry] = []
        errno = 0
        while let record = readdir(folder) {
            // Sound: the name ends with a zero byte inside the record, which lives until the next readdir.
            let name = withUnsafePointer(to: &record.pointee.d_name) {
                $0.withMemoryRebound(to: CChar.self, capacity: 1) { String(cString: $0) }
            }
            guard isCandidate(name) else { continue }
            // File systems that do not say what an entry is are asked about each.
            let kind = Int(record.pointee.d_type)
            if onlyLinks, kind != Int(DT_LNK), kind != Int(DT_UNKNOWN) { continue }
            let file = path.hasSuffix("/") ? path + name : "\(path)/\(name)"
            entries.append(Entry(name: name, path: file, identity: examine(file)))
        }
        return entries.sorted { $0.name < $1.name }
    }

    private static func examine(_ path: String) -> Result<FileIdentity, PluginError> {
        var status = stat()
        guard stat(path, &status) == 0, faccessat(AT_FDCWD, path, R_OK, AT_EACCESS) == 0 else {
            let code = errno
            let isLink = lstat(path, &status) == 0 && status.st_mode & S_IFMT == S_IFLNK
            let reason =
                switch code {
                case ENOENT where isLink: "is a link to a file that does not exist."
                case ENOENT: "does not exist, or has a name that is no UTF-8."
                case ELOOP: "is a link that leads back to itself."
                case EACCES: "cannot be read by this user: Permission denied. Repair it with: chmod u+r '\(path)'"
                default: "cannot be read: \(describe(errno: code))."
                }
            return .failure(PluginError(.unreadable, "\(path) \(reason)"))
        }
        return .success(FileIdentity(status))
    }
}
