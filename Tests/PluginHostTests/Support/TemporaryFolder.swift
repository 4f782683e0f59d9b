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
        try content.write(to: URL(fileURLWithPath: file))
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

/// Copies a file. Unlike FileManager's copy it leaves no descriptor open for writing in programs that a parallel test
/// starts meanwhile, by which a host would see a file that is being written.
func copyFile(_ source: String, to destination: String) throws {
    let content = try Data(contentsOf: URL(fileURLWithPath: source))
    let descriptor = open(destination, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o755)
    guard descriptor >= 0 else { throw POSIXError(.init(rawValue: errno) ?? .EIO) }
    defer { close(descriptor) }
    var written = 0
    while written < content.count {
        let count = content[written...].withUnsafeBytes { write(descriptor, $0.baseAddress, $0.count) }
        guard count > 0 else { throw POSIXError(.init(rawValue: errno) ?? .EIO) }
        written += count
    }
}
