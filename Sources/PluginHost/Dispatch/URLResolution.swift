import CPluginABI
import PluginABI

/// What a URL leads to, and the values that it carries.
struct URLResolution {
    let url: URLText
    let target: String
    let action: String
    /// The route that matched; nil where the URL names target and action itself.
    let route: RouteEntry?
    /// What the groups of the route's pattern have taken.
    let values: [String: String]

    /// Names that an action may declare to be told about the URL.
    enum Reserved: String, CaseIterable {
        /// The URL as it was given.
        case url = "_url"
        /// The pattern that matched, or nothing.
        case pattern = "_pattern"
        /// Whether the caller asks for an object, with `object(for:)`.
        case object = "_object"
    }
}

extension Table {
    /// Finds what a URL leads to: a declared route, then `scheme://target/action`, then the fallback of the scheme.
    ///
    /// - Throws: `invalidURL` for a URL that leads nowhere.
    func resolve(_ url: URLText, schemes: Set<String>) throws(PluginError) -> URLResolution {
        if let match = routeTable.match(url) { return resolution(url, match) }
        let named = try? names(url, schemes)
        if let named, let actions = targets[named.target]?.actions,
            actions[named.action] != nil || actions["notFound"] != nil
        {
            return URLResolution(url: url, target: named.target, action: named.action, route: nil, values: [:])
        }
        if let fallback = routeTable.fallback(url) { return resolution(url, fallback) }
        let (target, action) = try names(url, schemes)
        return URLResolution(url: url, target: target, action: action, route: nil, values: [:])
    }

    private func resolution(_ url: URLText, _ match: RouteTable<RouteEntry>.Match) -> URLResolution {
        let route = match.entry.route
        return URLResolution(
            url: url, target: route.target, action: route.action, route: route, values: match.values)
    }

    /// Target and action of a URL of the form `scheme://target/action`.
    private func names(_ url: URLText, _ schemes: Set<String>) throws(PluginError) -> (target: String, action: String) {
        guard let scheme = url.scheme else {
            throw PluginError(.invalidURL, "“\(url.text.shortened)” has no scheme, and no route matches it.")
        }
        guard schemes.contains(scheme) else {
            let known = schemes.sorted().map { "\($0)://" }.joined(separator: ", ")
            throw PluginError(
                .invalidURL,
                "“\(url.text.shortened)” matches no route, and “\(scheme.shortened)://” is no scheme of this program, "
                    + "which answers to \(known.isEmpty ? "none" : known).")
        }
        let path = url.path.split(separator: PathScalars.separator, omittingEmptySubsequences: false)
        guard path.count == 2, path[0].isEmpty, !path[1].isEmpty, !url.writtenHost.isEmpty else {
            throw PluginError(
                .invalidURL,
                "“\(url.text.shortened)” matches no route, and does not have exactly a target and an action "
                    + "(scheme://target/action).")
        }
        return (url.writtenHost, PathScalars.text(path[1]))
    }
}

extension URLResolution {
    /// The parameters that the URL and the route give, as text converted to the declared types: path, then query, then
    /// the defaults of the route. What the caller has given itself is left out.
    ///
    /// - Throws: `mistypedParameter` for text that is no value of the declared type.
    func parameters(
        for declared: [Endpoint.Parameter], overriddenBy given: UnsafeBufferPointer<plugin_entry>, asksForObject: Bool
    ) throws(PluginError) -> Parameters {
        let given = Set(given.lazy.map(\.key.text))
        var entries: [String: Value] = [:]
        for (name, value) in route?.defaults ?? [:] where !given.contains(name) { entries[name] = value }
        let query = Dictionary(grouping: url.query.filter { !given.contains($0.name) }, by: \.name)
        for (name, items) in query.sorted(by: { $0.key < $1.key }) where values[name] == nil {
            let isList = declared.contains { $0.name == name && $0.kind == .list }
            entries[name] =
                isList
                ? .list(items.map { .string($0.value) }) : try Self.convert(items.last!.value, name, declared)
        }
        for (name, text) in values where !given.contains(name) {
            entries[name] = try Self.convert(text, name, declared)
        }
        for reserved in Reserved.allCases where declared.contains(where: { $0.name == reserved.rawValue }) {
            entries[reserved.rawValue] =
                switch reserved {
                case .url: .string(url.text)
                case .pattern: route.map { .string($0.pattern.text) } ?? .null
                case .object: .bool(asksForObject)
                }
        }
        return Parameters(entries)
    }

    private static func convert(
        _ text: String, _ name: String, _ declared: [Endpoint.Parameter]
    ) throws(PluginError) -> Value {
        let kind = declared.first { $0.name == name }?.kind ?? .any
        let value: Value? =
            switch kind {
            case .string, .any: .string(text)
            case .int: Int(text).map(Value.int)
            case .double: Double(text).map(Value.double)
            case .bool: ["true": true, "1": true, "false": false, "0": false][text].map(Value.bool)
            case .bytes: Bytes(base64: text).map(Value.bytes)
            case .list: .list([.string(text)])
            case .map, .object, .null: nil
            }
        guard let value else {
            throw PluginError(
                .mistypedParameter,
                "The parameter “\(name.shortened)” is declared \(kind); the URL has “\(text.shortened)”.")
        }
        return value
    }

    /// Lends the names in the form of the table.
    func withNames<Result>(
        _ body: (plugin_string, plugin_string) throws(PluginError) -> Result
    ) throws(PluginError) -> Result {
        try Array(target.utf8CString).withUnsafeBufferPointer { (target) throws(PluginError) in
            try Array(action.utf8CString).withUnsafeBufferPointer { (action) throws(PluginError) in
                try body(
                    plugin_string(bytes: target.baseAddress, count: UInt64(target.count - 1)),
                    plugin_string(bytes: action.baseAddress, count: UInt64(action.count - 1)))
            }
        }
    }
}

extension String {
    /// The text, cut for a message.
    var shortened: String { count > 200 ? prefix(200) + "…" : self }
}
