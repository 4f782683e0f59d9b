package import PluginABI

/// A file in a plugins folder that declares routes or services, in JSON or as a property list. Its content is an object
/// whose keys are the patterns or the names.
package struct DeclarationFile {
    /// The maximum size of a file, in bytes.
    package static let sizeLimit = 16 << 20

    let path: String
    /// The code of the errors that concern the file.
    let code: PluginError.Code

    /// Returns whether this is the name of a route or service file, even of one whose format is not accepted.
    package static func isNamed(_ name: String) -> Bool {
        RouteFile.isNamed(name) || ServiceFile.isNamed(name) || otherFormat(name) != nil
    }

    /// Checks that the extension of a route or service file stands for an accepted format.
    ///
    /// - Throws: `invalidRouteFile` or `invalidServiceFile`.
    package static func checkFormat(of path: String) throws(PluginError) {
        guard let (kind, code) = otherFormat(path) else { return }
        throw PluginError(
            code,
            "\(path) is not read: its name must end in .\(kind).json, with its content in JSON, or in .\(kind).plist, "
                + "with its content as a property list in XML.")
    }

    /// Returns the kind of a file whose name ends in `.KIND.EXTENSION` with an extension that is not accepted, and the
    /// code of the error; `nil` for other names, such as those of backups (`x.routes.json~`).
    private static func otherFormat(_ name: String) -> (kind: String, code: PluginError.Code)? {
        let words = name.utf8.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false).suffix(2)
        guard words.count == 2, words.startIndex > 0, let word = words.first, let last = words.last,
            case let ending = String(Substring(last)), !notFormats.contains(ending), (1...16).contains(last.count),
            last.allSatisfy({ $0.isLetter || $0.isDigit })
        else { return nil }
        return switch String(Substring(word)) {
        case "routes": ("routes", .invalidRouteFile)
        case "services": ("services", .invalidServiceFile)
        default: nil
        }
    }

    /// The accepted extensions, and those of modules and of files that tools leave behind.
    private static let notFormats: Set = ["json", "plist", "so", "bak", "swp", "tmp"]

    /// Returns whether a file name ends in `.KIND.json` or `.KIND.plist`.
    static func isNamed(_ name: String, _ kind: String) -> Bool {
        name.hasSuffix(".\(kind).json") || name.hasSuffix(".\(kind).plist")
    }

    /// Reads the file's content.
    ///
    /// - Throws: `code`, with the file, what is wrong and where, also for a duplicate name.
    func content(_ bytes: [UInt8]) throws(PluginError) -> Value {
        path.hasSuffix(".plist") ? try propertyList(bytes) : try Value(jsonFile: bytes, code: code, what: path)
    }

    /// Returns the entries of the file's content, sorted by key.
    ///
    /// - Parameter mapping: A description of the mapping, for the error if the content is not an object.
    /// - Throws: `code`.
    func entries(_ content: Value, _ mapping: String) throws(PluginError) -> [(key: String, value: Value)] {
        guard let entries = content.map else { throw error(" must be an object that maps \(mapping).") }
        return entries.sorted { $0.key < $1.key }
    }

    private func propertyList(_ bytes: [UInt8]) throws(PluginError) -> Value {
        if bytes.isEmpty { throw error(" is empty.") }
        guard String(validating: bytes, as: UTF8.self) != nil else { throw error(" is not valid UTF-8.") }
        return try bytes.span.withUnsafeBytes { text throws(PluginError) in
            do throws(MalformedText) { return try PropertyListReader.read(text) } catch {
                throw self.error(" \(error.message(in: text))")
            }
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
