import CDispatch
import FoundationEssentials
import Glibc
import PluginABI
import PluginFile

/// The file `.pluginhost-undo` in a plugins folder while a host changes files there. It is locked and describes the
/// previous state of the folder. If the host is killed, the next host finds the file unlocked and puts everything back.
///
/// The file exists before the first change. It is empty or incomplete until all preparations are done, and is removed
/// as soon as the change has succeeded. Its entries therefore apply whenever it is complete, and can be applied twice.
struct UndoFile {
    /// A file as it was before the change.
    struct Entry: Equatable {
        let path: String
        /// The second name of the previous file, in the same folder; `nil` if there was no file.
        let copy: String?
        /// The digest of the new file; `nil` if the change removes the file.
        let newDigest: UInt64?
    }

    static let name = ".pluginhost-undo"
    private static let sizeLimit = 1 << 20
    private static let end: [UInt8] = Array("end".utf8)

    let folder: String
    private let descriptor: Int32

    private var path: String { "\(folder)/\(Self.name)" }

    /// Creates and locks the file, or locks one that was left behind by a host that was killed.
    ///
    /// - Throws: `unreadable` if another host has locked it, or it cannot be created.
    init(in folder: String) throws(PluginError) {
        self.folder = folder
        let path = "\(folder)/\(Self.name)"
        for _ in 0..<10 {
            let descriptor = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0o600)
            guard descriptor >= 0 else { throw Self.failed(folder, errno) }
            guard flock(descriptor, LOCK_EX | LOCK_NB) == 0 else {
                let code = errno
                close(descriptor)
                guard code != EWOULDBLOCK else {
                    throw PluginError(
                        .unreadable, "Another host is changing the files in \(folder). Try again when it is done.")
                }
                throw Self.failed(folder, code)
            }
            if Self.isStill(descriptor, at: path) {
                self.descriptor = descriptor
                return
            }
            close(descriptor)  // Another host has removed the file before it was locked.
        }
        throw Self.failed(folder, EAGAIN)
    }

    /// Writes the entries to apply if the change is not completed. The change may begin afterwards.
    ///
    /// - Throws: `unreadable`.
    func write(_ entries: [Entry]) throws(PluginError) {
        var text: [UInt8] = []
        for entry in entries {
            // Paths are relative to the folder, which may be reached by another path later.
            let isBelow = entry.path.beginsWithBytes(of: "\(folder)/")
            let path = entry.path.utf8.dropFirst(isBelow ? folder.utf8.count + 1 : 0)
            let copy = entry.copy.map { Array($0.utf8) } ?? []
            let digest = entry.newDigest.map { Array(VersionStore.hex($0).utf8) } ?? []
            text += Array(path) + [0] + copy + [0] + digest + [0]
        }
        text += Self.end
        guard text.count <= Self.sizeLimit, ftruncate(descriptor, 0) == 0,
            text.withUnsafeBytes({ SourceFile.write($0, to: descriptor) }),
            fsync(descriptor) == 0
        else { throw Self.failed(folder, errno) }
    }

    /// Returns the entries; `nil` if the file is incomplete, in which case nothing was changed.
    func read() -> [Entry]? {
        var status = stat()
        guard fstat(descriptor, &status) == 0, (1...Self.sizeLimit).contains(Int(status.st_size)) else { return nil }
        let text = [UInt8](unsafeUninitializedCapacity: Int(status.st_size)) { buffer, count in
            count = max(0, pread(descriptor, buffer.baseAddress, buffer.count, 0))
        }
        let fields = text.split(separator: 0, omittingEmptySubsequences: false)
        guard fields.last.map(Array.init) == Self.end, fields.count % 3 == 1 else { return nil }
        return stride(from: 0, to: fields.count - 1, by: 3).map { index in
            let (path, copy, digest) = (fields[index], fields[index + 1], fields[index + 2])
            let name = String(decoding: path, as: UTF8.self)
            return Entry(
                path: path.first == UInt8(ascii: "/") ? name : "\(folder)/\(name)",
                copy: copy.isEmpty ? nil : String(decoding: copy, as: UTF8.self),
                newDigest: UInt64(String(decoding: digest, as: UTF8.self), radix: 16))
        }
    }

    /// Removes the file, so that nothing is put back.
    func remove() {
        unlink(path)
        close(descriptor)
    }

    private static func isStill(_ descriptor: Int32, at path: String) -> Bool {
        var (own, there) = (stat(), stat())
        return fstat(descriptor, &own) == 0 && lstat(path, &there) == 0 && own.st_ino == there.st_ino
            && own.st_dev == there.st_dev
    }

    private static func failed(_ folder: String, _ code: Int32) -> PluginError {
        PluginError(
            .unreadable,
            "The file \(folder)/\(name) cannot be written, so nothing is changed: \(describe(errno: code)).")
    }

    // MARK: Recovery

    /// Undoes a change in a folder that a host had begun when it was killed, and removes temporary files that it left
    /// behind. Does nothing if the host is still running. Files are not put back if any of them has since been
    /// replaced by another file.
    ///
    /// - Throws: `untrusted`, `unreadable`.
    static func recover(in folder: String) throws(PluginError) {
        var names: [String] = []
        guard let stream = opendir(folder) else { return }
        while let record = readdir(stream) {
            // Sound: the name ends with a zero byte inside the record, which lives until the next readdir.
            let name = withUnsafePointer(to: &record.pointee.d_name) {
                $0.withMemoryRebound(to: CChar.self, capacity: 1) { String(validatingCString: $0) }
            }
            if let name, name == Self.name || isLeftover(name) { names.append(name) }
        }
        closedir(stream)
        guard !names.isEmpty else { return }
        // If this fails, another host is changing the folder, or the folder is not writable.
        guard let file = try? UndoFile(in: folder) else { return }
        do throws(PluginError) { try Trust.check(fileDescriptor: file.descriptor, path: file.path) } catch {
            close(file.descriptor)
            throw error
        }
        defer { file.remove() }
        var status = stat()
        if let entries = file.read(), entries.allSatisfy(isAsLeft) {
            for entry in entries { putBack(entry) }
        }
        for name in names where name != Self.name {
            let path = "\(folder)/\(name)"
            // A file of another user was not created by a host of this user, whatever its name.
            guard lstat(path, &status) == 0, [S_IFREG, S_IFLNK].contains(status.st_mode & S_IFMT),
                [0, geteuid()].contains(status.st_uid)
            else { continue }
            unlink(path)
        }
    }

    /// Puts a file back as it was before the change. Does nothing if that was already done.
    static func putBack(_ entry: Entry) {
        guard let copy = entry.copyPath else {
            unlink(entry.path)
            return
        }
        rename(copy, entry.path)
        unlink(copy)  // `rename` does nothing if both names belong to the same file.
    }

    /// Removes the second name of the previous file.
    static func removeCopy(of entry: Entry) { if let copy = entry.copyPath { unlink(copy) } }

    /// Returns whether a file is as it was before the change, or as the change left it.
    private static func isAsLeft(_ entry: Entry) -> Bool {
        var (there, before) = (stat(), stat())
        guard lstat(entry.path, &there) == 0 else { return true }
        func digest(_ path: String) -> UInt64? { (try? SourceFile(opening: path))?.digest() }
        if let copy = entry.copyPath {
            guard lstat(copy, &before) == 0 else { return true }  // A host that was then killed has put it back.
            if there.st_ino == before.st_ino, there.st_dev == before.st_dev { return true }
            if digest(entry.path) == digest(copy) { return true }
        }
        return entry.newDigest != nil && digest(entry.path) == entry.newDigest
    }

    /// Returns whether a name is that of a file that the host sets aside, or writes before renaming it.
    private static func isLeftover(_ name: String) -> Bool {
        let text = name.utf8
        guard text.starts(with: SetAside.prefix.utf8) else { return false }
        let rest = text.dropFirst(SetAside.prefix.utf8.count)
        let isNamed = [".new", ".aside"].contains { rest.dropFirst(16).elementsEqual($0.utf8) }
        return isNamed && rest.prefix(16).allSatisfy { (48...57).contains($0) || (97...102).contains($0) }
    }
}

extension UndoFile.Entry {
    /// The path of ``copy``.
    fileprivate var copyPath: String? { copy.map { "\(path.parentFolder)/\($0)" } }
}
