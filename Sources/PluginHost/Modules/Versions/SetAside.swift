import CDispatch
import FoundationEssentials
import Glibc
import PluginABI
import PluginFile

/// Files in plugins folders that are set aside before a change, to be put back if it fails. Each file gets a second
/// name that no host scans, and each folder an ``UndoFile``, in case the host is killed during the change.
struct SetAside {
    /// The prefix of the names of temporary files that the host creates in plugins folders.
    static let prefix = ".pluginhost-"

    private var entries: [UndoFile.Entry] = []
    /// The undo files. The first one contains the entries; the others protect the second names in their folders.
    private var undo: [UndoFile] = []

    /// Sets files aside.
    ///
    /// - Parameters:
    ///   - paths: The files, absolute or relative to the working directory.
    ///   - newDigests: The digests of the files that the change puts at these paths, by path.
    /// - Throws: `unreadable` if one of the files cannot be set aside; nothing is then left behind.
    init(_ paths: [String], newDigests: [PathKey: UInt64] = [:]) throws(PluginError) {
        do throws(PluginError) {
            let locations = paths.map { path in
                (path: path, folder: path.parentFolder.withoutLinks)
            }
            // In a folder that does not exist yet there is nothing to put back.
            for folder in Set(paths: locations.map(\.folder)).sorted().map(\.path) where access(folder, F_OK) == 0 {
                try UndoFile.recover(in: folder)
                undo.append(try UndoFile(in: folder))
            }
            for (path, folder) in locations {
                let file = "\(folder)/\(path.fileName)"
                entries.append(
                    UndoFile.Entry(path: file, copy: try Self.setAside(file), newDigest: newDigests[path]))
            }
            try undo.first?.write(entries)
        } catch {
            discard()
            throw error
        }
    }

    /// Gives a file a second name in its folder, and returns it. Returns `nil` if there is no file.
    private static func setAside(_ path: String) throws(PluginError) -> String? {
        var status = stat()
        guard lstat(path, &status) == 0 else { return nil }
        var digest = FileDigest(size: 0)
        Array(path.utf8).withUnsafeBytes { digest.mix($0) }
        let name = "\(prefix)\(VersionStore.hex(digest.value)).aside"
        let copy = "\(path.parentFolder)/\(name)"
        // Not every file system supports hard links, and they may not be allowed for files of other users.
        if link(path, copy) != 0 {
            do { try FileManager.default.copyItem(atPath: path, toPath: copy) } catch {
                throw PluginError(
                    .unreadable,
                    "\(path) cannot be set aside in its folder, so nothing is changed: \(CocoaError.text(error))")
            }
        }
        return name
    }

    /// Puts every file back atomically, and removes files that did not exist before.
    func putBack() {
        for entry in entries { UndoFile.putBack(entry) }
        discard()
    }

    /// Discards what was set aside, since the change has succeeded.
    func discard() {
        undo.first?.remove()
        for entry in entries { UndoFile.removeCopy(of: entry) }
        for file in undo.dropFirst() { file.remove() }
    }
}
