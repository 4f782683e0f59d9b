import CDispatch
import Foundation
import Glibc
import PluginABI
import PluginFile

/// The file `.pluginhost-undo` in a plugins folder, while a host changes files there: locked, and with what the folder was
/// like before. Where the host is killed, the next one finds the file without its lock, and puts everything back.
///
/// It is there before the first change, and empty or incomplete until nothing but changes is left to do; it is gone as soon
/// as the change stands. So what it says is to be done whenever it is complete, and may be done twice.
struct UndoFile {
    /// A file as it was before the change.
    struct Entry: Equatable {
        let path: String
        /// The second name of what was there, in the folder of the file; nil where there was none.
        let copy: String?
        /// Of what the change puts there; nil where it takes away.
        let newDigest: UInt64?
    }

    static let name = ".pluginhost-undo"
    private static let sizeLimit = 1 << 20
    private static let end: [UInt8] = Array("end".utf8)

    let folder: String
    private let descriptor: Int32

    private var path: String { "\(folder)/\(Self.name)" }

    /// Makes the file, or takes one that a host that was killed has left.
    ///
    /// - Throws: `unreadable` if another host holds it, or it cannot be made.
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
            close(descriptor)  // Another host has taken it away before it was locked.
        }
        throw Self.failed(folder, EAGAIN)
    }

    /// Writes what is to be done if the change does not come to its end. From now on it may begin.
    ///
    /// - Throws: `unreadable`.
    func write(_ entries: [Entry]) throws(PluginError) {
        var text: [UInt8] = []
        for entry in entries {
            // From the folder, which may be reached by another path then.
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

    /// What it says; nil where it does not come to its end, since then nothing was changed.
    func read() -> [Entry]? {
        var status = stat()
        guard fstat(descriptor, &status) == 0, (1...Self.sizeLimit).contains(Int(status.st_size)) else { return nil }
        let text = [UInt8](unsafeUninitializedCapacity: Int(status.st_size)) { buffer, count in
            count = max(0, pread(descriptor, buffer.baseAddress, buffer.count, 0))
        }
        let fields = text.split(separator: 0, omittingEmptySubsequences: false)
        guard fields.last.map(Array.init) == Self.end, fields.count % 3 == 1 else { return nil }
        return stride(from: 0, to: fields.count - 1, by: 3).map { place in
            let (path, copy, digest) = (fields[place], fields[place + 1], fields[place + 2])
            let name = String(decoding: path, as: UTF8.self)
            return Entry(
                path: path.first == UInt8(ascii: "/") ? name : "\(folder)/\(name)",
                copy: copy.isEmpty ? nil : String(decoding: copy, as: UTF8.self),
                newDigest: UInt64(String(decoding: digest, as: UTF8.self), radix: 16))
        }
    }

    /// Ends the change: nothing is put back any more.
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

    // MARK: What was left behind

    /// Puts back what a host has begun to change in a folder and was killed over, and removes what it has left. What
    /// belongs to a host that lives stays; so does everything where somebody has put other files meanwhile.
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
        let file: UndoFile
        do throws(PluginError) { file = try UndoFile(in: folder) } catch {
            // A host that lives is at work; or nobody may write here.
            return
        }
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
            // Another user's file is none of ours, whatever its name.
            guard lstat(path, &status) == 0, [S_IFREG, S_IFLNK].contains(status.st_mode & S_IFMT),
                [0, geteuid()].contains(status.st_uid)
            else { continue }
            unlink(path)
        }
    }

    /// Puts a file back as it was before the change. Does nothing where that has been done.
    static func putBack(_ entry: Entry) {
        guard let copy = entry.copyPath else {
            unlink(entry.path)
            return
        }
        rename(copy, entry.path)
        unlink(copy)  // Renaming does nothing where both names are the same file's.
    }

    /// Removes the second name of what was there.
    static func removeCopy(of entry: Entry) { if let copy = entry.copyPath { unlink(copy) } }

    /// Whether a file is as it was before the change, or as the change left it.
    private static func isAsLeft(_ entry: Entry) -> Bool {
        var (there, before) = (stat(), stat())
        guard lstat(entry.path, &there) == 0 else { return true }
        func digest(_ path: String) -> UInt64? { (try? SourceFile(opening: path))?.digest() }
        if let copy = entry.copyPath {
            guard lstat(copy, &before) == 0 else { return true }  // It was put back by a host that was killed over it.
            if there.st_ino == before.st_ino, there.st_dev == before.st_dev { return true }
            if digest(entry.path) == digest(copy) { return true }
        }
        return entry.newDigest != nil && digest(entry.path) == entry.newDigest
    }

    /// Whether a name is one that the host gives to what it sets aside or is about to put into a folder.
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
    fileprivate var copyPath: String? { copy.map { "\((path as NSString).deletingLastPathComponent)/\($0)" } }
}
