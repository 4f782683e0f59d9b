internal import CPluginABI
internal import Foundation
internal import PluginABI

/// A file in a plugins folder that declares something for modules, in JSON or as a property list: an object that maps
/// names to what they stand for.
struct DeclarationFile {
    /// The largest that is read, in bytes.
    static let sizeLimit = 16 << 20

    let path: String
    /// Of the errors.
    let code: PluginError.Code

    /// Whether a name is that of a file of routes or services.
    static func isNamed(_ name: String) -> Bool { RouteFile.isNamed(name) || ServiceFile.isNamed(name) }

    /// Whether a name ends in `.KIND.json` or `.KIND.plist`.
    static func isNamed(_ name: String, _ kind: String) -> Bool {
        name.hasSuffix(".\(kind).json") || name.hasSuffix(".\(kind).plist")
    }

    /// Reads the file's content; nil when it is something else than an object.
    ///
    /// - Throws: `code`, with the file, what is wrong and where; also for a name that is there twice.
    func entries(_ bytes: [UInt8]) throws(PluginError) -> [String: Value]? {
        if path.hasSuffix(".plist") { return try PropertyListText.parse(bytes, path, code).map }
        let content = try bytes.withUnsafeBytes { text in
            Result { () throws(PluginError) in try ManifestJSON.parse(text, code: code, what: path) }
        }.get()
        guard let entries = content.map else { return nil }
        // The decoder drops names that come twice: each of the outermost object has a colon.
        let colons = JSONStructure(bytes).lazy.filter { $0.byte == UInt8(ascii: ":") && $0.depth == 1 }
        if entries.count < colons.reduce(0, { count, _ in count + 1 }) {
            throw PluginError(code, "\(path) maps a name twice; each stands in a file once.")
        }
        return entries
    }
}

/// Property lists in XML.
private enum PropertyListText {
    static func parse(_ bytes: [UInt8], _ path: String, _ code: PluginError.Code) throws(PluginError) -> Value {
        if bytes.isEmpty { throw PluginError(code, "\(path) is empty.") }
        if bytes.starts(with: "bplist".utf8) {
            throw PluginError(
                code,
                "\(path) is a binary property list; those in XML are read. Convert it with: plutil -convert xml1")
        }
        guard String(validating: bytes, as: UTF8.self) != nil else {
            throw PluginError(code, "\(path) is no UTF-8.")
        }
        let start = bytes.first { !" \t\r\n".utf8.contains($0) }
        guard bytes.starts(with: [0xEF, 0xBB, 0xBF]) || start == UInt8(ascii: "<") else {
            throw PluginError(code, "\(path) is no property list in XML: it does not begin with <.")
        }
        try checkDepth(bytes, path, code)
        do {
            return try PropertyListDecoder().decode(PropertyListValue.self, from: Data(bytes)).value
        } catch {
            throw PluginError(code, "\(path) is no property list: \(reason(error))")
        }
    }

    private static func reason(_ error: any Error) -> String {
        guard case DecodingError.dataCorrupted(let context) = error else { return "\(error)" }
        let cause = (context.underlyingError as NSError?)?.userInfo[NSDebugDescriptionErrorKey] as? String
        return cause ?? context.debugDescription
    }

    /// Elements within elements, so that the decoder never meets a text nested too deeply.
    private static func checkDepth(
        _ bytes: [UInt8], _ path: String, _ code: PluginError.Code
    ) throws(PluginError) {
        var depth = 0
        var rest = bytes[...]
        func skip(past end: String) {
            let end = Array(end.utf8)
            while !rest.isEmpty, !rest.starts(with: end) { rest.removeFirst() }
        }
        while let place = rest.firstIndex(of: UInt8(ascii: "<")) {
            rest = rest[place...]
            if rest.starts(with: "<!--".utf8) {
                skip(past: "-->")
            } else if rest.starts(with: "<![CDATA[".utf8) {
                skip(past: "]]>")
            } else if rest.starts(with: "</".utf8) {
                depth -= 1
            } else if !rest.starts(with: "<?".utf8), !rest.starts(with: "<!".utf8) {
                let end = rest.firstIndex(of: UInt8(ascii: ">")) ?? rest.endIndex
                if end > rest.startIndex, rest[end - 1] != UInt8(ascii: "/") { depth += 1 }
            }
            guard depth <= Int(PLUGIN_DEPTH_MAX) else {
                throw PluginError(
                    code,
                    "\(path) is nested more than \(PLUGIN_DEPTH_MAX) levels deep, at byte \(place).")
            }
            rest = rest.dropFirst()
        }
    }
}

/// Any value of a property list but dates.
private struct PropertyListValue: Decodable {
    let value: Value

    init(from decoder: any Decoder) throws {
        if let keyed = try? decoder.container(keyedBy: Key.self) {
            var entries: [String: Value] = [:]
            for key in keyed.allKeys {
                entries[key.stringValue] = try keyed.decode(PropertyListValue.self, forKey: key).value
            }
            value = .map(entries)
        } else if var list = try? decoder.unkeyedContainer() {
            var values: [Value] = []
            while !list.isAtEnd { values.append(try list.decode(PropertyListValue.self).value) }
            value = .list(values)
        } else {
            value = try Self.scalar(try decoder.singleValueContainer())
        }
    }

    private static func scalar(_ container: any SingleValueDecodingContainer) throws -> Value {
        if let string = try? container.decode(String.self) { return .string(string) }
        if let bool = try? container.decode(Bool.self) { return .bool(bool) }
        if let int = try? container.decode(Int.self) { return .int(int) }
        if container.decodeNil() { return .null }
        if let data = try? container.decode(Data.self) { return .bytes(Bytes(data)) }
        return .double(try container.decode(Double.self))
    }

    private struct Key: CodingKey {
        let stringValue: String
        let intValue: Int? = nil

        init(stringValue: String) { self.stringValue = stringValue }
        init?(intValue: Int) { return nil }
    }
}
