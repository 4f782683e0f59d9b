/// A route: a pattern of URLs that lead to an action of the module.
///
///     Route("app://shop/detail/:key", to: "A/fetchDetail", defaults: ["page": 1])
///
/// The pattern is `scheme://host/path`; the path is a WHATWG URL Pattern (`:name`, `*`, `{…}?`, `:id(\\d+)`). Its
/// groups become parameters of the action, converted to the declared types.
public struct Route: ManifestPart {
    let pattern: String
    let action: String
    let defaults: NamedValues
    let groups: [Int: String]
    private(set) var name: String?
    private(set) var summary = ""
    private(set) var transition = Transition.none
    private(set) var method: RouteMethod?

    /// Declares a route.
    ///
    /// - Parameters:
    ///   - pattern: The pattern. Without a scheme, it has the first scheme of the program; if it begins with `//`, it
    ///     matches any scheme. `scheme://` alone matches if no other pattern for that scheme does.
    ///   - action: The action, `target/action`, of this module.
    ///   - defaults: Values for parameters that neither the caller nor the URL gives.
    ///   - groups: The parameters for groups without a name (`*`, `(\d+)`), which are numbered from 0 through host and
    ///     path: `[0: "path"]`. The text of a group with neither a name nor a parameter is in the rest of the action,
    ///     under the number of the group, or is ignored if the action takes no rest.
    public init(
        _ pattern: String, to action: String, defaults: NamedValues = [:], groups: [Int: String] = [:]
    ) {
        (self.pattern, self.action, self.defaults, self.groups) = (pattern, action, defaults, groups)
    }

    /// Declares a route whose defaults are a map.
    @_documentation(visibility: internal) @_disfavoredOverload
    public init(
        _ pattern: String, to action: String, defaults: [String: Value], groups: [Int: String] = [:]
    ) { self.init(pattern, to: action, defaults: NamedValues(defaults), groups: groups) }

    /// Adds a name by which URLs of the route can be built.
    public func named(_ name: String) -> Self { modified(self) { $0.name = name } }

    /// Adds one sentence about what the route opens.
    public func summary(_ text: String) -> Self { modified(self) { $0.summary = text } }

    /// Makes a URL from outside the program show the page that the action makes, if the program has a navigator that
    /// shows such pages. With ``Transition/none`` (the default), and for callers inside the program, opening the URL
    /// only returns the page.
    public func transition(_ transition: Transition) -> Self { modified(self) { $0.transition = transition } }

    /// Makes the route answer one HTTP method only. Without it, the route answers every method.
    ///
    ///     Route("https://*/shop/:id", to: "A/fetchDetail").method(.get)
    ///     Route("https://*/shop/:id", to: "A/remove").method(.delete)
    ///
    /// Routes with the same pattern conflict unless each has a method of its own. A URL that is opened without a method
    /// is opened with ``RouteMethod/get``.
    public func method(_ method: RouteMethod) -> Self { modified(self) { $0.method = method } }

    public func add(to module: ModuleDescription) {
        var entry = ManifestObject()
        entry.add("pattern", .string(pattern))
        entry.add("action", .string(action))
        if let method { entry.add("method", .string(method.rawValue)) }
        if let name { entry.add("name", .string(name)) }
        if !summary.isEmpty { entry.add("summary", .string(summary)) }
        if transition != .none { entry.add("transition", .string(transition.rawValue)) }
        switch Result(catching: defaults.get) {
        case .success(let defaults): if !defaults.isEmpty { entry.add("defaults", .map(defaults)) }
        // A key that no manifest has: the host refuses the manifest, and its error quotes the key.
        case .failure(let error): entry.add("defaults: " + error.message, .null)
        }
        if !groups.isEmpty {
            var names: [String: Value] = [:]
            for (number, name) in groups { names[String(number)] = .string(name) }
            entry.add("groups", .map(names))
        }
        module.routes.append(entry.json)
    }
}
