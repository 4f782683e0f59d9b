import PluginABI

/// A file in a plugins folder that declares routes or services, in JSON or as a property list. Its content is an object
/// whose keys are the patterns or the names.
package struct DeclarationFile {
    /// The maximum size of a file, in bytes.
    package static let sizeLimit = 16 << 20

    let path: String
    /// The code of errors.
    let code: PluginError.Code

    /// Returns whether a file name is that of a route or service file.
    package static func isNamed(_ name: String) -> Bool { RouteFile.isNamed(name) || ServiceFile.isNamed(name) }

    /// Returns whether a file name ends in `.KIND.json` or `.KIND.plist`.
    static func isNamed(_ name: String, _ kind: String) -> Bool {
        name.hasSuffix(".\(kind).json") || name.hasSuffix(".\(kind).plist")
    }

    /// Reads the file's content.
    ///
    /// - Parameter mapping: A description of the mapping, for the error if the content is not an object.
    /// - Throws: `code`, with the file, what is wrong and where, also for a duplicate name.
    func entries(_ bytes: [UInt8], _ mapping: String) throws(PluginError) -> [(key: String, value: Value)] {
        let value =
            path.hasSuffix(".plist") ? try propertyList(bytes) : try Value(jsonFile: bytes, code: code, what: path)
        guard let entries = value.map else { throw error(" must be an object that maps \(mapping).") }
        return entries.sorted { $0.key < $1.key }
    }

    private func propertyList(_ bytes: [UInt8]) throws(PluginError) -> Value {
        if bytes.isEmpty { throw error(" is empty.") }
        guard String(validating: bytes, as: UTF8.self) != nil else { throw error(" is not valid UTF-8.") }
        do throws(MalformedText) {
            return try bytes.span.withUnsafeBytes { text throws(MalformedText) in try PropertyListReader.read(text) }
        } catch {
            throw self.error(" \(error.message)")
        }
    }

    func checkCount(_ count: Int, _ what: String, limit: Int) throws(PluginError) {
        if count > limit { throw error(" has \(count) \(what); at most \(limit) are accepted.") }
    }

    /// Makes an error.
    ///
    /// - Parameter message: The text that follows the path.
    func error(_ message: String) -> PluginError { PluginError(code, path + message) }
}
