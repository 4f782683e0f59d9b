import PluginABI

/// A file in a plugins folder that declares something for modules, in JSON or as a property list: an object that maps
/// names to what they stand for.
package struct DeclarationFile {
    /// The largest that is read, in bytes.
    package static let sizeLimit = 16 << 20

    let path: String
    /// Of the errors.
    let code: PluginError.Code

    /// Whether a name is that of a file of routes or services.
    package static func isNamed(_ name: String) -> Bool { RouteFile.isNamed(name) || ServiceFile.isNamed(name) }

    /// Whether a name ends in `.KIND.json` or `.KIND.plist`.
    static func isNamed(_ name: String, _ kind: String) -> Bool {
        name.hasSuffix(".\(kind).json") || name.hasSuffix(".\(kind).plist")
    }

    /// Reads the file's content.
    ///
    /// - Parameter mapping: What an object of such a file maps, for the error of anything else.
    /// - Throws: `code`, with the file, what is wrong and where; also for a name that is there twice.
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

    /// - Parameter message: What follows the path.
    func error(_ message: String) -> PluginError { PluginError(code, path + message) }
}
