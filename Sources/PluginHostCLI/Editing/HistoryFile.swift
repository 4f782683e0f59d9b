internal import FoundationEssentials
internal import Glibc
internal import PluginABI
internal import Synchronization

/// The file that keeps the lines of a prompt between sessions, readable only by this user. Each line is added when it
/// is entered, so that several hosts can use the file.
///
/// It is not an error if the file cannot be written: the history then ends with the session.
final class HistoryFile: Sendable {
    /// The maximum number of bytes of the file that are read.
    private static let sizeLimit = 1 << 20

    private let path: String
    private let present: Mutex<[String]>

    /// Opens a file in the state folder: in `$XDG_STATE_HOME/pluginhost` or `$HOME/.local/state/pluginhost`. Returns
    /// `nil` if neither variable is an absolute path.
    ///
    /// - Parameter limit: The number of lines that are kept.
    convenience init?(named name: String, _ variables: [String: String], limit: Int) {
        let folder =
            if let state = variables["XDG_STATE_HOME"], state.hasPrefix("/") {
                "\(state)/pluginhost"
            } else if let home = variables["HOME"], home.hasPrefix("/") {
                "\(home)/.local/state/pluginhost"
            } else {
                ""
            }
        if folder.isEmpty { return nil }
        try? FileManager.default.createDirectory(
            atPath: folder, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
        self.init(path: "\(folder)/\(name)", limit: limit)
    }

    init(path: String, limit: Int) {
        self.path = path
        let all = Self.read(path)
        let kept = Array(all.suffix(limit))
        present = Mutex(kept)
        // The file is shortened once it is twice as long as necessary.
        if all.count > 2 * limit { Self.replace(path, kept) }
    }

    /// The lines, oldest first.
    var lines: [String] { present.withLock { $0 } }

    func append(_ line: String) {
        present.withLock { $0.append(line) }
        let descriptor = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0o600)
        guard descriptor >= 0 else { return }
        Self.write(line + "\n", to: descriptor)
        close(descriptor)
    }

    private static func read(_ path: String) -> [String] {
        let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK)
        guard descriptor >= 0 else { return [] }
        defer { close(descriptor) }
        let size = lseek(descriptor, 0, SEEK_END)
        _ = lseek(descriptor, max(0, size - sizeLimit), SEEK_SET)
        var bytes: [UInt8] = []
        while bytes.count <= sizeLimit, readMore(descriptor, into: &bytes) > 0 {}
        let lines = bytes.split(separator: UInt8(ascii: "\n")).map { String(decoding: $0, as: UTF8.self) }
        return Array(size > sizeLimit ? lines.dropFirst() : lines[...])
    }

    private static func replace(_ path: String, _ lines: [String]) {
        let new = "\(path).\(getpid())"
        let descriptor = open(new, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0o600)
        guard descriptor >= 0 else { return }
        let isWritten = write(lines.map { $0 + "\n" }.joined(), to: descriptor)
        close(descriptor)
        if !isWritten || rename(new, path) != 0 { unlink(new) }
    }

    /// Returns whether the whole text was written.
    @discardableResult
    private static func write(_ text: String, to descriptor: CInt) -> Bool {
        let bytes = Array(text.utf8)
        return Glibc.write(descriptor, bytes, bytes.count) == bytes.count
    }
}
