import CDispatch
import Dispatch
import Glibc
import PluginABI
import PluginFile

/// A walk through a folder and optionally its subfolders, which visits each once.
///
///     while let folder = walk.next() {
///         // The folder is not read yet: watch it here to miss no change.
///         let names = try walk.read(folder)
///     }
///
/// Links to folders are followed after all folders that can be reached without one, so a folder that exists under its
/// own name is not visited again through a link, and cycles end. Hidden names are skipped.
struct FolderWalk {
    struct Folder {
        let path: String
        /// The path relative to the first folder; empty for the first folder itself.
        let name: String
        let identity: Identity
        fileprivate let depth: Int
    }

    /// The identity of a folder, whatever its name.
    struct Identity: Hashable {
        let device: dev_t
        let inode: ino_t
    }

    /// An item in a folder that is not visited as a folder.
    struct Item {
        /// The path relative to the first folder.
        let name: String
        let path: String
        /// Whether the item is a symbolic link, or the file system does not report its type.
        let canBeLink: Bool
        /// Whether the item may be a module, a route file or a service file.
        let isCandidate: Bool
        /// The reason why the item has no valid name. In that case `name` and `path` are substitutes.
        var error: PluginError?
        /// The identity of a candidate that this user owns and can read, with links followed; `nil` if it was not
        /// determined.
        var identity: FileIdentity?
    }

    /// A folder that is skipped, and the reason.
    struct Failure {
        let name: String
        let path: String
        let error: PluginError
    }

    /// How many levels of subfolders below the first folder are visited at most.
    static let depthLimit = 8
    /// How many folders are visited at most.
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

    /// Returns the next folder, before it is read; `nil` at the end.
    mutating func next() -> Folder? {
        while !folders.isEmpty || !links.isEmpty {
            let pending = folders.isEmpty ? links.removeFirst() : folders.removeFirst()
            var status = stat()
            guard stat(pending.path, &status) == 0, status.st_mode & S_IFMT == S_IFDIR else { continue }
            // Without subfolders, there is only one folder.
            guard !includesSubfolders || seen.insert(Identity(device: status.st_dev, inode: status.st_ino)).inserted
            else { continue }
            guard pending.depth <= Self.depthLimit else {
                fail(pending, "is more than \(Self.depthLimit) levels deep and is not scanned")
                continue
            }
            guard seen.count <= Self.countLimit else {
                fail(pending, "is not scanned, nor are others: there are more than \(Self.countLimit) folders")
                (folders, links) = ([], [])
                return nil
            }
            return Folder(
                path: pending.path, name: pending.name,
                identity: Identity(device: status.st_dev, inode: status.st_ino), depth: pending.depth)
        }
        return nil
    }

    /// Returns the items of a folder, except subfolders that are visited later.
    ///
    /// - Parameter identifies: Whether the identities of candidates are determined, where that takes one system call.
    /// - Throws: `unreadable`.
    mutating func read(_ folder: Folder, identifying identifies: Bool = false) throws(PluginError) -> [Item] {
        guard let stream = opendir(folder.path) else { throw PluginFolder.unreadable(folder.path, errno) }
        defer { closedir(stream) }
        let start = folder.path.pathOfItem("")
        var (items, names): ([Item], [String]) = ([], [])
        var refused: [Item] = []
        var found: (folders: [Pending], links: [Pending]) = ([], [])
        while let record = readdir(stream) {
            // Sound: the name ends with a zero byte inside the record, which lives until the next readdir.
            let bytes = UnsafeRawPointer(record).advanced(by: Self.nameOffset).assumingMemoryBound(to: CChar.self)
            guard bytes[0] != CChar(bitPattern: UInt8(ascii: ".")) else { continue }
            let (name, isText) = String(validatingCString: bytes).map { ($0, true) } ?? (Self.escaped(bytes), false)
            let path = start + name
            let relative = folder.name.isEmpty ? name : "\(folder.name)/\(name)"
            // Some file systems do not report the type of an entry (`DT_UNKNOWN`); it is then determined by `stat`.
            let kind = Int(record.pointee.d_type)
            guard isText else {
                refuse(name, path, relative, isFolder: kind == Int(DT_DIR), &refused)
                continue
            }
            let canBeLink = kind == Int(DT_LNK) || kind == Int(DT_UNKNOWN)
            if includesSubfolders, kind == Int(DT_DIR) || canBeLink && Self.isFolder(path) {
                let pending = Pending(path: path, name: relative, depth: folder.depth + 1)
                if kind == Int(DT_DIR) { found.folders.append(pending) } else { found.links.append(pending) }
            } else {
                let isCandidate = PluginFolder.isCandidate(name)
                items.append(Item(name: relative, path: path, canBeLink: canBeLink, isCandidate: isCandidate))
                names.append(name)
            }
        }
        folders += found.folders.sorted { PathKey($0.name) < PathKey($1.name) }
        links += found.links.sorted { PathKey($0.name) < PathKey($1.name) }
        if identifies { Self.identify(&items, names, in: dirfd(stream)) }
        if !refused.isEmpty { items += refused }
        return items
    }

    private static let nameOffset = MemoryLayout<dirent>.offset(of: \.d_name)!

    /// Determines the identities of candidates in a folder. Those of many files are determined by several threads.
    ///
    /// - Parameter names: The file names of the items.
    private static func identify(_ items: inout [Item], _ names: [String], in folder: Int32) {
        let (count, user) = (items.count, geteuid())
        items.withUnsafeMutableBufferPointer { items in
            // Sound: each thread changes items of its own, and all have ended when this function returns.
            nonisolated(unsafe) let items = items
            @Sendable func identify(_ part: Range<Int>) {
                for index in part where items[index].isCandidate {
                    items[index].identity = names[index].withCString { identity(of: $0, in: folder, user) }
                }
            }
            guard count >= 4 * share else { return identify(0..<count) }
            DispatchQueue.concurrentPerform(iterations: (count + share - 1) / share) { part in
                identify(part * share..<min((part + 1) * share, count))
            }
        }
    }

    /// How many files a thread examines at a time.
    private static let share = 64

    /// Returns the identity of a file that a user owns and can read; `nil` for any other.
    private static func identity(of name: UnsafePointer<CChar>, in folder: Int32, _ user: uid_t) -> FileIdentity? {
        var status = stat()
        guard fstatat(folder, name, &status, 0) == 0, status.st_uid == user, status.st_mode & S_IRUSR != 0
        else { return nil }
        return FileIdentity(status)
    }

    /// Records an error for an entry whose name is not valid UTF-8, if the entry would be scanned with a valid one.
    private mutating func refuse(
        _ name: String, _ path: String, _ relative: String, isFolder: Bool, _ items: inout [Item]
    ) {
        let error = PluginError(.unreadable, "\(path) is not scanned, since its name is not valid UTF-8. Rename it.")
        if isFolder {
            if includesSubfolders { failures.append(Failure(name: relative, path: path, error: error)) }
        } else if PluginFolder.isCandidate(String(name.dropLast(Self.note.count))) {
            items.append(Item(name: relative, path: path, canBeLink: false, isCandidate: true, error: error))
        }
    }

    /// Returns a substitute for a name that is not valid UTF-8: backslashes and bytes that are not printable ASCII are
    /// in hexadecimal. It is different for each name, and no file that is scanned can have it as its name.
    private static func escaped(_ name: UnsafePointer<CChar>) -> String {
        var text = ""
        // Sound: the name ends with a zero byte.
        for byte in UnsafeBufferPointer(start: name, count: strlen(name)).lazy.map(UInt8.init(bitPattern:)) {
            let isPlain = (0x20..<0x7F).contains(byte) && byte != UInt8(ascii: "\\")
            text += isPlain ? String(UnicodeScalar(byte)) : "\\x" + (byte < 16 ? "0" : "") + String(byte, radix: 16)
        }
        return text + note
    }
    private static let note = " (not UTF-8)"

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
