import Foundation
import PluginABI
import PluginHost

/// The folders of one bench, removed with the value that names them.
final class BenchFolder: Sendable {
    let path: String
    /// Where the modules lie.
    var plugins: String { "\(path)/plugins" }

    /// - Throws: `stagingFailed`, `unreadable`.
    init() throws(PluginError) {
        path = try makeTemporaryFolder("\(NSTemporaryDirectory())/plugin-test-XXXXXX")
        for folder in [plugins, "\(path)/staging", "\(path)/state"] {
            guard mkdir(folder, 0o700) == 0 else { throw Self.failure(folder, "cannot be made") }
        }
    }

    deinit { try? FileManager.default.removeItem(atPath: path) }

    /// Copies a module into the folder as deployment tools do: under another name, then by a rename. Whoever looks into
    /// the folder meanwhile sees the file before or the file after, whole.
    ///
    /// - Parameter suffix: Bytes behind its end. The dynamic linker never looks at them, but they make another file of it.
    func put(_ file: String, as name: String, suffix: String) throws(PluginError) {
        guard var content = FileManager.default.contents(atPath: file) else {
            throw PluginError(.unreadable, "\(file) cannot be read.")
        }
        content.append(contentsOf: suffix.utf8)
        let hidden = "\(plugins)/.\(UUID().uuidString)"
        try writeFile(content, to: hidden, mode: 0o700, O_EXCL)
        guard rename(hidden, "\(plugins)/\(name)") == 0 else { throw Self.failure(name, "cannot be renamed") }
    }

    /// Copies a file or a folder under its own name.
    func put(_ other: String) throws(PluginError) {
        let name = (other as NSString).lastPathComponent
        var isFolder: ObjCBool = false
        if FileManager.default.fileExists(atPath: other, isDirectory: &isFolder), !isFolder.boolValue {
            return try put(other, as: name, suffix: "")
        }
        do { try FileManager.default.copyItem(atPath: other, toPath: "\(plugins)/\(name)") } catch {
            throw PluginError(.unreadable, "\(other) cannot be copied: \(error.localizedDescription)")
        }
    }

    private static func failure(_ path: String, _ what: String) -> PluginError {
        PluginError(.unreadable, "\(path) \(what): \(String(cString: strerror(errno))).")
    }
}
