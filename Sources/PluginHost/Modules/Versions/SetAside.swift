import CDispatch
import Foundation
import Glibc
import PluginABI
import PluginFile

/// Files of plugins folders as they are before a change, to be put back if it fails: second names that no host looks at,
/// and in each folder an ``UndoFile``, for the case that the host is killed meanwhile.
struct SetAside {
    /// With which the names of files begin that the host makes in plugins folders for a while.
    static let prefix = ".pluginhost-"

    private var entries: [UndoFile.Entry] = []
    /// The first one says what is to be done; the others keep the files in their folders.
    private var undo: [UndoFile] = []

    /// - Parameters:
    ///   - paths: The files; absolute, or from the working directory.
    ///   - newDigests: Of what the change puts there, by path.
    /// - Throws: `unreadable` if one of the files cannot be set aside; then nothing is left behind.
    init(_ paths: [String], newDigests: [PathKey: UInt64] = [:]) throws(PluginError) {
        do throws(PluginError) {
            var places: [(path: String, folder: String)] = []
            for path in paths {
                let folder = VersionStore.resolved((path as NSString).deletingLastPathComponent)
                places.append((path, folder))
            }
            // What is in a folder that the change makes has nothing to be put back.
            for folder in Set(paths: places.map(\.folder)).sorted().map(\.path) where access(folder, F_OK) == 0 {
                try UndoFile.recover(in: folder)
                undo.append(try UndoFile(in: folder))
            }
            for (path, folder) in places {
                let place = "\(folder)/\((path as NSString).lastPathComponent)"
                entries.append(
                    UndoFile.Entry(path: place, copy: try Self.setAside(place), newDigest: newDigests[path]))
            }
            try undo.first?.write(entries)
        } catch {
            discard()
            throw error
        }
    }

    /// Gives a file a second name, in its folder. Nil where there is none.
    private static func setAside(_ path: String) throws(PluginError) -> String? {
        var status = stat()
        guard lstat(path, &status) == 0 else { return nil }
        var digest = FileDigest(size: 0)
        Array(path.utf8).withUnsafeBytes { digest.mix($0) }
        let name = "\(prefix)\(VersionStore.hex(digest.value)).aside"
        let copy = "\((path as NSString).deletingLastPathComponent)/\(name)"
        // Not every file system has second names, nor for files of others.
        if link(path, copy) != 0 {
            do { try FileManager.default.copyItem(atPath: path, toPath: copy) } catch {
                throw PluginError(
                    .unreadable,
                    "\(path) cannot be set aside in its folder, so nothing is changed: \(error.localizedDescription)")
            }
        }
        return name
    }

    /// Puts every file back at once, and removes what was not there.
    func putBack() {
        for entry in entries { UndoFile.putBack(entry) }
        discard()
    }

    /// The change stands.
    func discard() {
        undo.first?.remove()
        for entry in entries { UndoFile.removeCopy(of: entry) }
        for file in undo.dropFirst() { file.remove() }
    }
}
