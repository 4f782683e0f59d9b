import PluginABI

/// A file in a plugins folder that maps URLs to actions, `*.routes.json` or `*.routes.plist`:
///
///     {"app://shop/:key": "A/fetchDetail", "app://": {"action": "A/home", "summary": "Everything else"}}
enum RouteFile {
    static let routeLimit = 100_000

    static func isNamed(_ name: String) -> Bool { DeclarationFile.isNamed(name, "routes") }

    /// Reads what a file says.
    ///
    /// - Parameter path: Of the file, for messages and as the owner of the routes.
    /// - Throws: `invalidRouteFile`, with the file, what is wrong and where.
    static func parse(_ bytes: [UInt8], path: String) throws(PluginError) -> [RouteEntry] {
        let file = DeclarationFile(path: path, code: .invalidRouteFile)
        guard let routes = try file.entries(bytes) else {
            throw PluginError(
                .invalidRouteFile,
                "\(path) must be an object that maps patterns to actions, such as {\"app://shop/:key\": \"A/detail\"}.")
        }
        guard routes.count <= routeLimit else {
            throw PluginError(
                .invalidRouteFile, "\(path) has \(routes.count) routes; at most \(routeLimit) are accepted.")
        }
        return try entries(routes, path)
    }

    private static func entries(_ routes: [String: Value], _ path: String) throws(PluginError) -> [RouteEntry] {
        var entries: [RouteEntry] = []
        var taken: [RoutePattern.Shape: String] = [:]
        var names: [String: String] = [:]
        for (text, value) in routes.sorted(by: { $0.key < $1.key }) {
            let entry: RouteEntry
            do throws(PluginError) {
                entry = try self.entry(text, value, path, after: entries.last)
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

    private static func entry(
        _ text: String, _ value: Value, _ path: String, after previous: RouteEntry?
    ) throws(PluginError) -> RouteEntry {
        let pattern = try RoutePattern(text, after: previous?.pattern)
        if let action = value.string {
            return try RouteEntry(
                pattern, to: action, name: nil, summary: "", defaults: [:], owner: .file(path), after: previous)
        }
        guard case .map(let fields) = value else {
            throw PluginError(.invalidRouteFile, "It must be \"target/action\", or an object with the key \"action\".")
        }
        let known = ["action", "name", "summary", "defaults"]
        if let key = fields.keys.sorted().first(where: { !known.contains($0) }) {
            throw PluginError(
                .invalidRouteFile,
                "The key \"\(key.shortened)\" is not known.\(didYouMean(key, known)) Known are: "
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
            defaults: try field("defaults", \.map, "an object") ?? [:], owner: .file(path), after: previous)
    }
}
