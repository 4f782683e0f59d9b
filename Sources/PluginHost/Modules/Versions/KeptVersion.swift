import CDispatch
import FoundationEssentials
import Glibc
import PluginABI
import PluginFile

/// A version of a module in the ``VersionStore``.
struct KeptVersion: Sendable, Hashable {
    let module: String
    let version: SemanticVersion
    /// The digest of the module's own file.
    let digest: UInt64
    /// The folder that the version came from, without links.
    let folder: String
    /// The file name in the plugins folder.
    let fileName: String
    /// The time when the version was last kept, in nanoseconds since 1970. It is higher for versions that were kept
    /// later, even if the clock was set back.
    let stamp: Int
    /// The size of all files in bytes.
    let bytes: Int
    /// The path of the entry in the store.
    let path: String
    /// The module's own file, followed by its libraries. In the entry, each file is named by its index in this array.
    let files: [File]

    /// The time when the version was last kept.
    var date: Date { Date(timeIntervalSince1970: Double(stamp) / 1_000_000_000) }

    struct File: Sendable, Hashable {
        /// The path relative to the module's folder, such as `libfoo.so` or `../lib/libbar.so`.
        var path: String
        /// The size in bytes.
        let size: Int
        let digest: UInt64
    }
}

extension KeptVersion {
    /// The name of the description in an entry.
    private static let description = "version.json"

    /// Writes the description of an entry atomically, and waits until it is on the disk.
    ///
    /// - Parameter last: The stamp of the newest version of the module.
    static func describe(
        _ module: String, _ version: SemanticVersion, from folder: String, _ files: [File], after last: Int?,
        in entry: String
    ) throws(POSIXError) {
        let stamp = max(Int(realTimeNow()), (last ?? 0) &+ 1)
        let description: Value = [
            "module": .string(module), "version": .string(version.description), "folder": .string(folder),
            "stamp": .int(stamp), "files": .list(files.map(\.record)),
        ]
        let text = Array(description.json.utf8)
        let new = "\(entry)/.\(Self.description)"
        unlink(new)
        let output = open(new, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
        guard output >= 0 else { throw .current }
        defer { close(output) }
        guard text.withUnsafeBytes({ write(output, $0.baseAddress, $0.count) }) == text.count, fsync(output) == 0,
            rename(new, "\(entry)/\(Self.description)") == 0
        else { throw .current }
        try synchronize(folder: entry)
    }

    /// Reads an entry of the store. Returns `nil` if it belongs to another module or folder, or no longer exists.
    ///
    /// - Throws: `unreadable` if the entry is damaged; `untrusted` if other users can write it.
    init?(at path: String, of module: String?, from folder: String?, _ checksTrust: Bool) throws(PluginError) {
        let file = "\(path)/\(Self.description)"
        var status = stat()
        guard lstat(path, &status) == 0 else { return nil }
        let inode = status.st_ino
        if checksTrust { try Trust.check(status: status, path: path, above: nil) }
        func damaged(_ reason: String) -> PluginError {
            PluginError(.unreadable, "The kept version \(path) is damaged and left out: \(reason). Remove the folder.")
        }
        let text: [UInt8]
        do throws(PluginError) {
            let source = try SourceFile(opening: file)
            if checksTrust { try source.checkTrust() }
            text = try source.contents(limit: 1 << 20)
        } catch {
            if lstat(path, &status) != 0 { return nil }
            if error.code == .untrusted { throw error }
            throw damaged(error.message)
        }
        guard let description = try? Value(jsonMessage: text), let name = description["module"]?.string,
            let version = description["version"]?.string.flatMap({ SemanticVersion($0) }),
            let origin = description["folder"]?.string, let stamp = description["stamp"]?.int,
            let list = description["files"]?.list, case let files = list.compactMap(File.init),
            files.count == list.count, let own = files.first, files.allSatisfy({ $0.size >= 0 && $0.hasValidPath }),
            !own.path.contains("/")
        else { throw damaged("\(Self.description) does not describe a version") }
        if let module, name != module { return nil }
        if let folder, !origin.hasBytes(of: folder) { return nil }
        for (number, file) in files.enumerated() {
            guard lstat("\(path)/\(number)", &status) == 0, status.st_mode & S_IFMT == S_IFREG,
                Int(status.st_size) == file.size
            else {
                // Another host may have removed or replaced the entry since its description was read.
                guard lstat(path, &status) == 0 else { return nil }
                if status.st_ino != inode {
                    try self.init(at: path, of: module, from: folder, checksTrust)
                    return
                }
                throw damaged("the copy of \(file.path) is missing or has a different size")
            }
            if checksTrust { try Trust.check(status: status, path: "\(path)/\(number)", above: nil) }
        }
        self.init(
            module: name, version: version, digest: own.digest, folder: origin, fileName: own.path, stamp: stamp,
            bytes: files.reduce(0) { $0 &+ $1.size }, path: path, files: files)
    }

    /// Whether the content of all files is unchanged.
    var isWhole: Bool {
        files.enumerated().allSatisfy { number, file in
            (try? File(at: "\(path)/\(number)", from: path))?.digest == file.digest
        }
    }
}

extension KeptVersion.File {
    // A digest can be too large for the int of a value.
    fileprivate var record: Value {
        ["path": .string(path), "size": .int(size), "digest": .string(VersionStore.hex(digest))]
    }

    fileprivate init?(_ record: Value) {
        guard let path = record["path"]?.string, let size = record["size"]?.int,
            let digest = record["digest"]?.string.flatMap({ UInt64($0, radix: 16) })
        else { return nil }
        self.init(path: path, size: size, digest: digest)
    }

    /// Describes an existing file, with its path relative to a folder.
    init(at path: String, from folder: String) throws(POSIXError) {
        errno = EINVAL
        guard let file = try? SourceFile(opening: path), let digest = file.digest() else { throw .current }
        let parts = (path.split(separator: "/"), folder.split(separator: "/"))
        let common = zip(parts.0, parts.1).prefix { $0 == $1 }.count
        self.path = (parts.1.dropFirst(common).map { _ in ".." } + parts.0.dropFirst(common)).joined(separator: "/")
        size = Int(file.identity.size)
        self.digest = digest
    }

    /// Whether the path leads to a file below the module's folder, or not far above it.
    fileprivate var hasValidPath: Bool {
        let parts = path.split(separator: "/", omittingEmptySubsequences: false)
        return parts.drop { $0 == ".." }.allSatisfy { $0 != ".." && $0 != "." && !$0.isEmpty }
            && parts.last != ".." && parts.prefix { $0 == ".." }.count <= 8
    }
}

/// Waits until the entries of a folder are on the disk. Does nothing on file systems that do not support that.
func synchronize(folder: String) throws(POSIXError) {
    let descriptor = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
    guard descriptor >= 0 else { throw .current }
    defer { close(descriptor) }
    guard fsync(descriptor) == 0 || errno == EINVAL else { throw .current }
}

extension POSIXError {
    /// The error in `errno`.
    static var current: POSIXError { POSIXError(POSIXErrorCode(rawValue: errno) ?? .EIO) }
}
