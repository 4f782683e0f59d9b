package import FoundationEssentials
import Glibc
package import PluginABI
import PluginFile

/// Writes a file, and waits until no other process has it open for writing, since a host does not load a file that is
/// being written.
///
/// A process that is started during the write inherits the descriptor until it executes its program, which closes it.
/// This function waits for that, for at most a minute. With Foundation's functions, the file would stay open in such a
/// process until the process ends.
///
/// - Parameter flags: `O_TRUNC`, or `O_EXCL` if the file must not exist yet.
/// - Throws: `stagingFailed` if the file cannot be written; `unreadable` if it cannot be opened afterwards.
package func writeFile(
    _ content: Data, to path: String, mode: UInt32 = 0o644, _ flags: Int32 = O_TRUNC
) throws(PluginError) {
    let descriptor = open(path, O_WRONLY | O_CREAT | O_CLOEXEC | flags, mode)
    let isWritten = descriptor >= 0 && content.withUnsafeBytes { SourceFile.write($0, to: descriptor) }
    let code = errno
    if descriptor >= 0 { close(descriptor) }
    guard isWritten else {
        throw PluginError(.stagingFailed, "\(path) cannot be written: \(describe(errno: code)).")
    }
    let file = try SourceFile(opening: path)
    for _ in 0..<60_000 {
        guard file.isBeingWritten() else { return }
        usleep(1000)
    }
}
