import Foundation
import PluginHost

/// A folder of one test's own, removed with the value that names it.
final class TemporaryFolder: Sendable {
    let path: String

    init() throws {
        let made = try makeTemporaryFolder("\(NSTemporaryDirectory())/pluginhost-test-XXXXXX")
        // Without links, so that what programs say about it is what tests expect.
        guard let resolved = realpath(made, nil) else { throw POSIXError(.ENOENT) }
        defer { free(resolved) }
        path = String(cString: resolved)
    }

    deinit { try? FileManager.default.removeItem(atPath: path) }

    /// Writes a file and returns its path.
    @discardableResult
    func file(_ name: String, _ content: Data = Data(), mode: mode_t = 0o644) throws -> String {
        let file = "\(path)/\(name)"
        try writeFile(content, to: file)
        chmod(file, mode)
        return file
    }

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

/// Waits until a condition holds; false if it does not within five minutes.
func eventually(_ condition: () -> Bool) -> Bool {
    for _ in 0..<30_000 {
        if condition() { return true }
        usleep(10_000)
    }
    return false
}

/// Copies a file as `writeFile` writes it, to where there is none.
func copyFile(_ source: String, to destination: String) throws {
    try writeFile(Data(contentsOf: URL(fileURLWithPath: source)), to: destination, mode: 0o755, O_EXCL)
}
