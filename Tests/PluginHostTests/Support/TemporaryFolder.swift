import Foundation

@testable import PluginHost

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

/// Writes a file that no other process has open for writing when this returns: a host would leave it alone as one that
/// is being written. Foundation's ways leave the descriptor open in programs that another test starts meanwhile, and
/// every way leaves it open in them until they have begun.
///
/// - Parameter flags: `O_EXCL` where there must be no such file yet.
func writeFile(_ content: Data, to path: String, mode: mode_t = 0o644, _ flags: Int32 = O_TRUNC) throws {
    let descriptor = open(path, O_WRONLY | O_CREAT | O_CLOEXEC | flags, mode)
    guard descriptor >= 0 else { throw POSIXError(.init(rawValue: errno) ?? .EIO) }
    do {
        defer { close(descriptor) }
        var rest = content[...]
        while !rest.isEmpty {
            let count = rest.withUnsafeBytes { write(descriptor, $0.baseAddress, $0.count) }
            guard count > 0 else { throw POSIXError(.init(rawValue: errno) ?? .EIO) }
            rest = rest.dropFirst(count)
        }
    }
    var patience = 300_000
    while patience > 0, try SourceFile(opening: path).isBeingWritten() {
        usleep(1000)
        patience -= 1
    }
}

/// Copies a file as ``writeFile(_:to:mode:_:)`` does, to where there is none.
func copyFile(_ source: String, to destination: String) throws {
    try writeFile(Data(contentsOf: URL(fileURLWithPath: source)), to: destination, mode: 0o755, O_EXCL)
}
