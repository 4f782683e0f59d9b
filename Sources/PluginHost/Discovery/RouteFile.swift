internal import CPluginABI
internal import Foundation
internal import PluginABI

/// A file in a plugins folder that maps URLs to actions, `*.routes.json` or `*.routes.plist`:
///
///     {"app://shop/:key": "A/fetchDetail", "app://": {"action": "A/home", "summary": "Everything else"}}
enum RouteFile {
    static let sizeLimit = 16 << 20
    static let routeLimit = 100_000

    static func isNamed(_ name: String) -> Bool { name.hasSuffix(".routes.json") || name.hasSuffix(".routes.plist") }

    /// Reads what a file says.
    ///
    /// - Parameter path: Of the file, for messages and as the owner of the routes.
    /// - Throws: `invalidRouteFile`, with the file, what is wrong and where.
    static func parse(_ bytes: [UInt8], path: String) throws(PluginError) -> [RouteEntry] {
        let isPropertyList = path.hasSuffix(".plist")
        let content = isPropertyList ? try PropertyListText.parse(bytes, path: path) : try json(bytes, path)
        guard case .map(let routes) = content else {
            throw PluginError(
                .invalidRouteFile,
                "\(path) must be an object that maps patterns to actions, such as {\"app://shop/:key\": \"A/detail\"}.")
        }
        guard routes.count <= routeLimit else {
            throw PluginError(
                .invalidRouteFile, "\(path) has \(routes.count) routes; at most \(routeLimit) are accepted.")
        }
        if !isPropertyList, routes.count < keyCount(bytes) {
            throw PluginError(.invalidRouteFile, "\(path) maps a pattern twice; each stands in a file once.")
        }
        return try entries(routes, path)
    }

    private static func json(_ bytes: [UInt8], _ path: String) throws(PluginError) -> Value {
        try bytes.withUnsafeBytes { text in
            Result { () throws(PluginError) in
                try ManifestJSON.parse(text, code: .invalidRouteFile, what: path)
            }
        }.get()
    }

    private static func entries(_ routes: [String: Value], _ path: String) throws(PluginError) -> [RouteEntry] {
        var entries: [RouteEntry] = []
        var taken: [RoutePattern.Shape: String] = [:]
        var names: [String: String] = [:]
        for (text, value) in routes.sorted(by: { $0.key < $1.key }) {
            let entry: RouteEntry
            do throws(PluginError) {
                entry = try self.entry(text, value, path)
            } catch {
                throw PluginError(.invalidRouteFile, "\(path), route “\(text.shortened)”: \(error.message)")
            }
            if let other = taken.updateValue(text, forKey: entry.pattern.shape) {
                throw PluginError(
                    .invalidRouteFile,
                    "\(path): “\(other.shortened)” and “\(text.shortened)” match the same URLs; only one can stand.")
            }
            if let name = entry.name, let other = names.updateValue(text, forKey: name) {
                throw PluginError(
                    .invalidRouteFile,
                    "\(path): “\(other.shortened)” and “\(text.shortened)” are both named “\(name.shortened)”.")
            }
            entries.append(entry)
        }
        return entries
    }

    private static func entry(_ text: String, _ value: Value, _ path: String) throws(PluginError) -> RouteEntry {
        let pattern = try RoutePattern(text)
        if let action = value.string {
            return try RouteEntry(pattern, to: action, name: nil, summary: "", defaults: [:], owner: .file(path))
        }
        guard case .map(let fields) = value else {
            throw PluginError(.invalidRouteFile, "It must be \"target/action\", or an object with the key \"action\".")
        }
        let known = ["action", "name", "summary", "defaults"]
        if let key = fields.keys.sorted().first(where: { !known.contains($0) }) {
            throw PluginError(
                .invalidRouteFile,
                "The key \"\(key.shortened)\" is not known.\(PluginError.didYouMean(key, known)) Known are: "
                    + "\(known.joined(separator: ", ")).")
        }
        func field<T>(_ key: String, _ read: (Value) -> T?, _ kind: String) throws(PluginError) -> T? {
            guard let value = fields[key] else { return nil }
            guard let result = read(value) else { throw PluginError(.invalidRouteFile, "\"\(key)\" must be \(kind).") }
            return result
        }
        guard let action = try field("action", \.string, "a string, written target/action") else {
            throw PluginError(.invalidRouteFile, "The key \"action\" is missing.")
        }
        return try RouteEntry(
            pattern, to: action, name: try field("name", \.string, "a string"),
            summary: try field("summary", \.string, "a string") ?? "",
            defaults: try field("defaults", \.map, "an object") ?? [:], owner: .file(path))
    }

    /// How many keys the outermost object has, counted by their colons: the decoder drops those that come twice.
    private static func keyCount(_ text: [UInt8]) -> Int {
        var (count, depth) = (0, 0)
        var (isInString, isEscaped) = (false, false)
        for byte in text {
            if isInString {
                if isEscaped {
                    isEscaped = false
                } else if byte == UInt8(ascii: "\\") {
                    isEscaped = true
                } else if byte == UInt8(ascii: "\"") {
                    isInString = false
                }
                continue
            }
            switch byte {
            case UInt8(ascii: "\""): isInString = true
            case UInt8(ascii: "["), UInt8(ascii: "{"): depth += 1
            case UInt8(ascii: "]"), UInt8(ascii: "}"): depth -= 1
            case UInt8(ascii: ":") where depth == 1: count += 1
            default: break
            }
        }
        return count
    }
}

/// Property lists in XML.
private enum PropertyListText {
    /// - Throws: `invalidRouteFile`.
    static func parse(_ bytes: [UInt8], path: String) throws(PluginError) -> Value {
        if bytes.isEmpty { throw PluginError(.invalidRouteFile, "\(path) is empty.") }
        if bytes.starts(with: "bplist".utf8) {
            throw PluginError(
                .invalidRouteFile,
                "\(path) is a binary property list; those in XML are read. Convert it with: plutil -convert xml1")
        }
        guard String(validating: bytes, as: UTF8.self) != nil else {
            throw PluginError(.invalidRouteFile, "\(path) is no UTF-8.")
        }
        let start = bytes.first { !" \t\r\n".utf8.contains($0) }
        guard bytes.starts(with: [0xEF, 0xBB, 0xBF]) || start == UInt8(ascii: "<") else {
            throw PluginError(.invalidRouteFile, "\(path) is no property list in XML: it does not begin with <.")
        }
        try checkDepth(bytes, path)
        do {
            return try PropertyListDecoder().decode(ManifestJSON.JSON.self, from: Data(bytes)).value
        } catch {
            throw PluginError(.invalidRouteFile, "\(path) is no property list: \(reason(error))")
        }
    }

    private static func reason(_ error: any Error) -> String {
        guard case DecodingError.dataCorrupted(let context) = error else { return "\(error)" }
        let cause = (context.underlyingError as NSError?)?.userInfo[NSDebugDescriptionErrorKey] as? String
        return cause ?? context.debugDescription
    }

    /// Elements within elements, so that the decoder never meets a text nested too deeply.
    private static func checkDepth(_ bytes: [UInt8], _ path: String) throws(PluginError) {
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
                    .invalidRouteFile,
                    "\(path) is nested more than \(PLUGIN_DEPTH_MAX) levels deep, at byte \(place).")
            }
            rest = rest.dropFirst()
        }
    }
}
