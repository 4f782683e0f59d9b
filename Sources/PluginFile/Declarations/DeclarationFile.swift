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

    /// Reads the file's content; nil when it is something else than an object.
    ///
    /// - Throws: `code`, with the file, what is wrong and where; also for a name that is there twice.
    func entries(_ bytes: [UInt8]) throws(PluginError) -> [String: Value]? {
        guard path.hasSuffix(".plist") else { return try Value(jsonFile: bytes, code: code, what: path).map }
        if bytes.isEmpty { throw PluginError(code, "\(path) is empty.") }
        guard String(validating: bytes, as: UTF8.self) != nil else {
            throw PluginError(code, "\(path) is not valid UTF-8.")
        }
        do throws(MalformedText) {
            return try bytes.span.withUnsafeBytes { text throws(MalformedText) in
                try PropertyListReader.read(text)
            }.map
        } catch {
            throw PluginError(code, "\(path) \(error.message)")
        }
    }
}
