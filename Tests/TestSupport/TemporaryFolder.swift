import Foundation
import PluginHost

/// A folder for one test, removed when this object is deinitialized.
final class TemporaryFolder: Sendable {
    /// Short, because sockets are created in the folder, and without links, so that programs show it as tests expect.
    let path: String

    /// The prefix of the names of these folders.
    static let prefix = "plugins-test-"

    init() throws {
        let made = try makeTemporaryFolder("\(NSTemporaryDirectory())/\(Self.prefix)XXXXXX")
        guard let resolved = realpath(made, nil) else { throw POSIXError(.ENOENT) }
        defer { free(resolved) }
        path = String(cString: resolved)
    }

    deinit { try? FileManager.default.removeItem(atPath: path) }

    /// Writes a file, creating its folders if necessary, and returns its path.
    @discardableResult
    func file(_ name: String, _ content: Data = Data(), mode: mode_t = 0o644) throws -> String {
        let file = "\(path)/\(name)"
        let folder = (file as NSString).deletingLastPathComponent
        if access(folder, F_OK) != 0 {
            try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        }
        try writeFile(content, to: file)
        chmod(file, mode)
        return file
    }

    /// Writes a text to a file and returns its path.
    @discardableResult
    func file(_ name: String, _ text: String) throws -> String { try file(name, Data(text.utf8)) }

    @discardableResult
    func folder(_ name: String, mode: mode_t = 0o755) throws -> String {
        let folder = "\(path)/\(name)"
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        chmod(folder, mode)
        return folder
    }

    /// Copies a file into the folder and returns its path.
    @discardableResult
    func copy(_ source: String, as name: String) throws -> String {
        let file = "\(path)/\(name)"
        try copyFile(source, to: file)
        return file
    }
}

/// Copies a file as `writeFile` writes it, to a path that does not exist.
func copyFile(_ source: String, to destination: String) throws {
    try writeFile(Data(contentsOf: URL(fileURLWithPath: source)), to: destination, mode: 0o755, O_EXCL)
}
