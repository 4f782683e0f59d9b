import Glibc
package import PluginABI
import PluginFile

/// The folder for temporary files: `$TMPDIR` if it is an absolute path, otherwise `/tmp`.
package var temporaryFolder: String {
    getenv("TMPDIR").map { String(cString: $0) }.flatMap { $0.hasPrefix("/") ? $0 : nil } ?? "/tmp"
}

/// Creates a folder with a unique name that only this user can access.
///
/// - Parameter pattern: The path, which ends with `XXXXXX`, as mkdtemp(3) requires.
/// - Throws: `stagingFailed`.
package func makeTemporaryFolder(_ pattern: String) throws(PluginError) -> String {
    var name = Array(pattern.utf8CString)
    guard mkdtemp(&name) != nil else {
        throw PluginError(
            .stagingFailed, "No folder can be created from the pattern \(pattern): \(describe(errno: errno)).")
    }
    return String(decoding: name.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
}
