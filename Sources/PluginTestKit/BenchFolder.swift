import FoundationEssentials
import Glibc
import PluginFile

/// The folders of one bench. They are deleted when the object is released.
final class BenchFolder: Sendable {
    let path: String
    /// The folder of the modules.
    var plugins: String { "\(path)/plugins" }

    /// - Throws: `stagingFailed`, `unreadable`.
    init() throws(PluginError) {
        path = try makeTemporaryFolder("\(temporaryFolder)/plugin-test-XXXXXX")
        for folder in [plugins, "\(path)/staging", "\(path)/state"] {
            guard mkdir(folder, 0o700) == 0 else { throw Self.failure(folder, "cannot be made") }
        }
    }

    deinit { try? FileManager.default.removeItem(atPath: path) }

    /// Copies a module into the folder as deployment tools do: under another name, followed by a rename. A scan sees
    /// the complete old file or the complete new one.
    ///
    /// - Parameter suffix: Bytes to append. The dynamic linker ignores them, but they make the file a different one.
    func put(_ file: String, as name: String, suffix: String) throws(PluginError) {
        guard var content = FileManager.default.contents(atPath: file) else {
            throw PluginError(.unreadable, "\(file) cannot be read.")
        }
        content.append(contentsOf: suffix.utf8)
        let hidden = "\(plugins)/.\(UUID().uuidString)"
        try writeFile(content, to: hidden, mode: 0o700, O_EXCL)
        guard rename(hidden, "\(plugins)/\(name)") == 0 else { throw Self.failure(name, "cannot be renamed") }
    }

    /// Copies a file or a folder into the folder of the modules, under its own name.
    func put(_ other: String) throws(PluginError) {
        let name = other.fileName
        var isFolder = false
        if FileManager.default.fileExists(atPath: other, isDirectory: &isFolder), !isFolder {
            return try put(other, as: name, suffix: "")
        }
        do { try FileManager.default.copyItem(atPath: other, toPath: "\(plugins)/\(name)") } catch {
            throw PluginError(.unreadable, "\(other) cannot be copied: \(CocoaError.text(error))")
        }
    }

    private static func failure(_ path: String, _ what: String) -> PluginError {
        PluginError(.unreadable, "\(path) \(what): \(String(cString: strerror(errno))).")
    }
}
