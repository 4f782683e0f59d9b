import Glibc
package import PluginABI
import PluginFile

/// Makes a folder for this user alone, under a name that nobody has.
///
/// - Parameter pattern: Its path, which ends with six times `X`, as mkdtemp(3) wants it.
/// - Throws: `stagingFailed`.
package func makeTemporaryFolder(_ pattern: String) throws(PluginError) -> String {
    var name = Array(pattern.utf8CString)
    guard mkdtemp(&name) != nil else {
        throw PluginError(.stagingFailed, "No folder can be made by the pattern \(pattern): \(describe(errno: errno)).")
    }
    return String(decoding: name.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
}
