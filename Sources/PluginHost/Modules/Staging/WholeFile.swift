package import Foundation
import Glibc
package import PluginABI
import PluginFile

/// Writes a file that no other process has open for writing when this returns: a host leaves such a file alone. It is
/// closed in programs that somebody starts meanwhile, but only when they have begun; so they are waited for, a minute at
/// most. Foundation's ways leave the file open in them until they end.
///
/// - Parameter flags: `O_TRUNC`, or `O_EXCL` where there must be no such file yet.
/// - Throws: `stagingFailed`; `unreadable` if it is gone at once.
package func writeFile(
    _ content: Data, to path: String, mode: mode_t = 0o644, _ flags: Int32 = O_TRUNC
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
