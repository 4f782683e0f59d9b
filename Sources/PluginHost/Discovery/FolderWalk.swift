internal import Glibc
internal import PluginABI

/// Goes through a folder and, where that is wanted, those below it, each once.
///
///     while let folder = walk.next() {
///         // Not read yet: who wants to miss nothing begins to watch it here.
///         let names = try walk.read(folder)
///     }
///
/// Links to folders are followed, after all folders that can be reached without one; so a folder that is there under its
/// own name is not met again under that of a link, and circles end. Hidden names are left out.
struct FolderWalk {
    struct Folder {
        let path: String
        /// From the first folder; empty for that.
        let name: String
        let identity: Identity
        fileprivate let depth: Int
    }

    /// Which folder it is, whatever its name.
    struct Identity: Hashable {
        let device: dev_t
        let inode: ino_t
    }

    /// Something in a folder that is not gone into.
    struct Item {
        /// From the first folder.
        let name: String
        let path: String
        /// Whether it is a symbolic link, as far as the file system says so.
        let canBeLink: Bool
    }

    /// A folder that is left out, and why.
    struct Failure {
        let name: String
        let path: String
        let error: PluginError
    }

    /// How many folders below each other are looked into, below the first one.
    static let depthLimit = 8
    /// How many folders are looked into.
    static let countLimit = 4096

    private struct Pending {
        let path: String
        let name: String
        let depth: Int
    }

    private let includesSubfolders: Bool
    private var folders: [Pending]
    private var links: [Pending] = []
    private var seen: Set<Identity> = []
    private(set) var failures: [Failure] = []

    init(_ path: String, includesSubfolders: Bool) {
        self.includesSubfolders = includesSubfolders
        folders = [Pending(path: path, name: "", depth: 0)]
    }

    /// The next folder, before it is read; nil at the end.
    mutating func next() -> Folder? {
        while !folders.isEmpty || !links.isEmpty {
            let pending = folders.isEmpty ? links.removeFirst() : folders.removeFirst()
            var status = stat()
            guard stat(pending.path, &status) == 0, status.st_mode & S_IFMT == S_IFDIR,
                seen.insert(Identity(device: status.st_dev, inode: status.st_ino)).inserted
            else { continue }
            guard pending.depth <= Self.depthLimit else {
                fail(pending, "lies more than \(Self.depthLimit) folders deep, and is not looked into")
                continue
            }
            guard seen.count <= Self.countLimit else {
                fail(pending, "is not looked into, nor are others: there are more than \(Self.countLimit) folders")
                (folders, links) = ([], [])
                return nil
            }
            return Folder(
                path: pending.path, name: pending.name,
                identity: Identity(device: status.st_dev, inode: status.st_ino), depth: pending.depth)
        }
        return nil
    }

    /// What is in a folder, but for other folders where those are looked into later.
    ///
    /// - Throws: `unreadable`.
    mutating func read(_ folder: Folder) throws(PluginError) -> [Item] {
        guard let stream = opendir(folder.path) else { throw PluginFolder.unreadable(folder.path, errno) }
        defer { closedir(stream) }
        var items: [Item] = []
        var found: (folders: [Pending], links: [Pending]) = ([], [])
        while let record = readdir(stream) {
            // Sound: the name ends with a zero byte inside the record, which lives until the next readdir.
            let name = withUnsafePointer(to: &record.pointee.d_name) {
                $0.withMemoryRebound(to: CChar.self, capacity: 1) { String(cString: $0) }
            }
            guard !name.hasPrefix(".") else { continue }
            let path = folder.path.hasSuffix("/") ? folder.path + name : "\(folder.path)/\(name)"
            let relative = folder.name.isEmpty ? name : "\(folder.name)/\(name)"
            // File systems that do not say what an entry is are asked about each.
            let kind = Int(record.pointee.d_type)
            let canBeLink = kind == Int(DT_LNK) || kind == Int(DT_UNKNOWN)
            if includesSubfolders, kind == Int(DT_DIR) || canBeLink && Self.isFolder(path) {
                let pending = Pending(path: path, name: relative, depth: folder.depth + 1)
                if kind == Int(DT_DIR) { found.folders.append(pending) } else { found.links.append(pending) }
            } else {
                items.append(Item(name: relative, path: path, canBeLink: canBeLink))
            }
        }
        folders += found.folders.sorted { $0.name < $1.name }
        links += found.links.sorted { $0.name < $1.name }
        return items
    }

    private mutating func fail(_ folder: Pending, _ reason: String) {
        failures.append(
            Failure(
                name: folder.name, path: folder.path,
                error: PluginError(.unreadable, "The folder \(folder.path) \(reason).")))
    }

    private static func isFolder(_ path: String) -> Bool {
        var status = stat()
        return stat(path, &status) == 0 && status.st_mode & S_IFMT == S_IFDIR
    }
}
