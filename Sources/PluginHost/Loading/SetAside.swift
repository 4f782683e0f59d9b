internal import Foundation
internal import Glibc
internal import PluginABI

/// Files of plugins folders as they are before a change, to be put back if it fails: second names that no host looks at.
struct SetAside {
    private struct File {
        let path: String
        /// Nil where there was none.
        let copy: String?
    }

    private var files: [File] = []

    /// - Throws: `unreadable` if one of the files cannot be set aside; then nothing is left behind.
    init(_ paths: some Sequence<String>) throws(PluginError) {
        for path in paths {
            var status = stat()
            guard lstat(path, &status) == 0 else {
                files.append(File(path: path, copy: nil))
                continue
            }
            var digest = FileDigest(size: 0)
            Array(path.utf8).withUnsafeBytes { digest.mix($0) }
            let folder = (path as NSString).deletingLastPathComponent
            let copy = "\(folder)/.pluginhost-\(VersionStore.hex(digest.value)).aside"
            unlink(copy)  // Of a host that was killed.
            // Not every file system has second names, nor for files of others.
            if link(path, copy) != 0 {
                do { try FileManager.default.copyItem(atPath: path, toPath: copy) } catch {
                    discard()
                    throw PluginError(
                        .unreadable,
                        "\(path) cannot be set aside in its folder, so nothing is changed: \(error.localizedDescription)"
                    )
                }
            }
            files.append(File(path: path, copy: copy))
        }
    }

    /// Puts every file back at once, and removes what was not there.
    func putBack() {
        for file in files {
            if let copy = file.copy { rename(copy, file.path) } else { unlink(file.path) }
        }
        discard()  // Renaming does nothing where both names are the same file's.
    }

    /// The change stands.
    func discard() { for file in files { if let copy = file.copy { unlink(copy) } } }
}
