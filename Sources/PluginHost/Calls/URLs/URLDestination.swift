import PluginABI

/// Where a URL leads: the result of ``PluginHost/destination(of:method:origin:)``.
///
/// Destinations can be keys: two of them are equal if the same route, or none, leads to the same action of the same
/// version of a module. A destination keeps its route in memory.
public struct URLDestination: Sendable {
    private let entry: RouteEntry?
    private let handler: URLHandler
    /// Target and action, if the URL itself names them, and another action or the program handles it.
    private let names: String?
    /// The module of the action; `nil` if there is none.
    public let module: String?

    /// The action that the URL reaches: `target/action`, or `(closure)` for a closure of the program.
    public var action: String {
        if let entry { return entry.destinationTitle }
        if let names { return names }
        if case .action(let endpoint) = handler { return endpoint.name }
        return "(closure)"
    }

    /// The fallback, if no module offers the action: `notFound`, the target's own fallback, or `onMissingTarget`, the
    /// program's; otherwise `nil`.
    public var fallback: String? {
        switch handler {
        case .fallback(.notFound): "notFound"
        case .fallback(.program): "onMissingTarget"
        case .action, .closure: nil
        }
    }

    /// The pattern of the route that leads to the action; `nil` if the URL itself names target and action.
    public var route: String? { entry?.pattern.text }

    /// - Parameter registered: The module, if it is only registered.
    fileprivate init(_ resolution: URLResolution, _ handler: URLHandler, registered: LoadedModule?) {
        (entry, self.handler) = (resolution.route?.takeUnretainedValue(), handler)
        let endpoint = handler.endpoint
        module = registered?.name ?? endpoint?.generation.name
        names =
            entry == nil && handler.declaring == nil ? "\(resolution.target.text)/\(resolution.action.text)" : nil
    }
}

extension URLDestination: Hashable {
    public static func == (left: URLDestination, right: URLDestination) -> Bool {
        left.entry === right.entry && left.handler.endpoint === right.handler.endpoint
            && left.fallback == right.fallback && left.names == right.names && left.module == right.module
    }

    public func hash(into hasher: inout Hasher) {
        hasher.combine(entry.map { ObjectIdentifier($0) })
        hasher.combine(handler.endpoint.map { ObjectIdentifier($0) })
        hasher.combine(names)
    }
}

extension URLHandler {
    /// The action that is called; `nil` for code of the program.
    fileprivate var endpoint: Endpoint? {
        switch self {
        case .action(let endpoint), .fallback(.notFound(let endpoint)): endpoint
        case .closure, .fallback(.program): nil
        }
    }
}

extension Calls {
    /// Finds what a URL leads to, without calling anything or checking parameters.
    ///
    /// - Throws: The error of opening the URL, if it leads nowhere.
    func destination(
        of url: String, isRemote: Bool, method: RouteMethod
    ) throws(PluginError) -> URLDestination {
        try url.withRawText { (text) throws(PluginError) in
            // A remote caller may be refused, so a registered module is not started for it.
            let table = isRemote ? registry.table : try tableStarting(text, isRemote: false, method: method)
            defer { withExtendedLifetime(table) {} }
            return try URLText.readPath(text, longest: settings.longestURL, scheme: settings.firstScheme) {
                (url) throws(PluginError) in
                if table.isStopped { throw table.isStopped(url) }
                let query = try url.readQuery()
                guard isRemote else {
                    let match = table.routes.table.match(url, method)
                    let resolution = try table.resolve(url, query, match, method, schemes: settings.schemes)
                    return URLDestination(resolution, try destination(of: resolution, in: table), registered: nil)
                }
                guard case .found(let resolution, let handler) = resolveRemotely(url, query, method, in: table) else {
                    try table.checkMethods(of: url, method)
                    throw PluginError(.noRoute, "“\(url.text.shortened)” leads to nothing for other programs.")
                }
                return URLDestination(
                    resolution, handler, registered: knownModule(of: resolution, handler, in: table))
            }
        }
    }
}
