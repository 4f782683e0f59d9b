import CDispatch
import Foundation
import Glibc
import PluginABI
import PluginFile

/// A version of a module in the ``VersionStore``.
struct KeptVersion: Sendable, Hashable {
    let module: String
    let version: SemanticVersion
    /// Of the module's own file.
    let digest: UInt64
    /// The folder that it came from, without links.
    let folder: String
    /// The name that the file had in the plugins folder.
    let fileName: String
    /// When it was last kept, in nanoseconds since 1970; of versions that were kept later it is higher, whatever became
    /// of the clock.
    let stamp: Int
    /// Of all its files.
    let bytes: Int
    /// Where it lies in the store.
    let path: String
    /// The module's own file, then the libraries that came with it; each lies in the entry under its number.
    let files: [File]

    /// When it was last kept.
    var date: Date { Date(timeIntervalSince1970: Double(stamp) / 1_000_000_000) }

    struct File: Sendable, Hashable {
        /// Where it belongs, from the folder that the module lies in: `libfoo.so`, `../lib/libbar.so`.
        var path: String
        /// In bytes.
        let size: Int
        let digest: UInt64
    }
}

extension KeptVersion {
    /// The name of the description in an entry.
    private static let description = "version.json"

    /// Writes the description of an entry, at once and to the disk.
    ///
    /// - Parameter last: The stamp of the newest version of the module.
    static func describe(
        _ module: String, _ version: SemanticVersion, from folder: String, _ files: [File], after last: Int?,
        in entry: String
    ) throws(POSIXError) {
        var now = timespec()
        clock_gettime(CLOCK_REALTIME, &now)
        let stamp = max(now.tv_sec &* 1_000_000_000 &+ now.tv_nsec, (last ?? 0) &+ 1)
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

    /// Reads an entry of the store. What is of another module or folder, or gone meanwhile, is nil.
    ///
    /// - Throws: `unreadable` for an entry that is not as the store made it; `untrusted` for one that others could have
    ///   written.
    init?(at path: String, of module: String?, from folder: String?, _ checksTrust: Bool) throws(PluginError) {
        let file = "\(path)/\(Self.description)"
        var status = stat()
        guard lstat(path, &status) == 0 else { return nil }
        if checksTrust { try Trust.check(status: status, path: path, above: nil) }
        func damaged(_ reason: String) -> PluginError {
            PluginError(.unreadable, "The kept version \(path) is damaged, and left out: \(reason). Remove the folder.")
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
            files.count == list.count, let own = files.first, files.allSatisfy({ $0.size >= 0 && $0.isPlaced }),
            !own.path.contains("/")
        else { throw damaged("\(Self.description) does not say what the version is") }
        if let module, name != module { return nil }
        if let folder, !origin.hasBytes(of: folder) { return nil }
        for (number, file) in files.enumerated() {
            guard lstat("\(path)/\(number)", &status) == 0, status.st_mode & S_IFMT == S_IFREG,
                Int(status.st_size) == file.size
            else { throw damaged("the copy of \(file.path) is missing, or has another size") }
            if checksTrust { try Trust.check(status: status, path: "\(path)/\(number)", above: nil) }
        }
        self.init(
            module: name, version: version, digest: own.digest, folder: origin, fileName: own.path, stamp: stamp,
            bytes: files.reduce(0) { $0 &+ $1.size }, path: path, files: files)
    }

    /// Whether all its files are what they were.
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

    /// What is to be said of a file that belongs where it lies, seen from a folder.
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
    fileprivate var isPlaced: Bool {
        let parts = path.split(separator: "/", omittingEmptySubsequences: false)
        return parts.drop { $0 == ".." }.allSatisfy { $0 != ".." && $0 != "." && !$0.isEmpty }
            && parts.last != ".." && parts.prefix { $0 == ".." }.count <= 8
    }
}

/// Waits until the names in a folder are on the disk. File systems that cannot say so are believed.
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
