import Glibc
package import PluginABI
import PluginFile

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
