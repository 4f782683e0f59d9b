public import PluginABI

/// The explanation of what a URL leads to, and why: the result of ``PluginHost/resolve(_:method:_:origin:)``.
public struct URLExplanation: Sendable {
    /// The URL as it was given.
    public let url: String
    /// The action that the URL reaches (`target/action`, or `(closure)` for a closure of the program), or would reach
    /// if it could be opened; `nil` if it leads nowhere.
    public internal(set) var action: String?
    /// The fallback, if no module offers the action: `notFound`, the target's own fallback, or `onMissingTarget`, the
    /// program's; otherwise `nil`.
    public internal(set) var fallback: String?
    /// The module of the action; `nil` if there is none.
    public internal(set) var module: String?
    /// The pattern of the route that leads to the action; `nil` if the URL itself names target and action.
    public internal(set) var route: String?
    /// The parameters as the action would get them, without those that have no value.
    public internal(set) var parameters: [String: Value] = [:]
    /// The methods with which the URL can be opened by a route, for example for the header `Allow` of an answer with
    /// the status 405; empty if no route matches. The action that a URL itself names answers every method.
    public internal(set) var methods: [RouteMethod] = []
    /// The demands of the action on other programs.
    public internal(set) var demands: [String] = []
    /// The reason why the URL cannot be opened; `nil` if it can be, unless the guard, an interceptor or the action
    /// itself refuses the call.
    public internal(set) var error: PluginError?
    /// The other routes that match the URL.
    public internal(set) var others: [Other] = []
    /// Whether ``others`` is complete. It has at most 100 elements.
    public internal(set) var othersAreComplete = true

    /// A route that also matches the URL, but does not decide what it leads to.
    public struct Other: Sendable {
        /// The pattern of the route; `scheme://target/action` for the action that the URL itself names.
        public let pattern: String
        /// The action that the route leads to: `target/action`, or `(closure)`.
        public let action: String
        /// The route's origin in words: a module, a file, or the program; empty for `scheme://target/action`.
        public let owner: String
        /// The rule by which another route precedes this one, or the reason why this one is passed over.
        public let reason: String
    }

    init(url: String) { self.url = url }

    static let mostOthers = 100
}

extension Calls {
    /// Explains a URL, without calling anything. Takes two to three times as long as opening it: finds all routes that
    /// match, then the one that decides, and compares them.
    func explain(
        _ url: String, _ parameters: Parameters, isRemote: Bool, method: RouteMethod
    ) -> URLExplanation {
        var explanation = URLExplanation(url: url)
        do throws(PluginError) {
            try url.withRawText { (text) throws(PluginError) in
                // A remote caller may be refused, so a registered module is not started for it.
                let table = isRemote ? registry.table : try tableStarting(text, isRemote: false, method: method)
                defer { withExtendedLifetime(table) {} }
                try parameters.lend { (given) throws(PluginError) in
                    try URLText.readPath(text, longest: settings.longestURL, scheme: settings.firstScheme) {
                        (url) throws(PluginError) in
                        if table.isStopped { throw table.isStopped(url) }
                        try explain(
                            url, try url.readQuery(), given, isRemote: isRemote, method, table, &explanation)
                    }
                }
            }
        } catch {
            explanation.error = error
        }
        return explanation
    }

    private func explain(
        _ url: URLText, _ query: URLText.Query, _ given: UnsafeBufferPointer<plugin_entry>, isRemote: Bool,
        _ method: RouteMethod, _ table: Table, _ explanation: inout URLExplanation
    ) throws(PluginError) {
        explanation.methods =
            isRemote ? table.remoteMethods(of: url) : table.routes.table.methods(of: url) { _ in true }
        let candidates = URLCandidates(url, method, table, settings.schemes)
        let found = isRemote ? resolveRemotely(url, query, method, in: table) : nil
        let resolution: URLResolution
        var destination: URLHandler?
        switch found {
        case .found(let known, let reached): (resolution, destination) = (known, reached)
        case .nothing(let passedOver):
            explanation.list(candidates, of: url, deciding: nil, isRemote: true, in: table)
            if !explanation.methods.isEmpty { throw .methodNotAllowed(url.text, method, explanation.methods) }
            throw PluginError(
                .noRoute,
                "“\(url.text.shortened)” leads to nothing that other programs may open. "
                    + table.reasonForNoRoute(url, schemes: settings.schemes, passing: passedOver))
        case nil:
            do throws(PluginError) {
                resolution = try table.resolve(
                    url, query, table.routes.table.match(url, method), method, schemes: settings.schemes)
            } catch {
                explanation.list(candidates, of: url, deciding: nil, isRemote: false, in: table)
                throw error
            }
        }
        let route = resolution.route?.takeUnretainedValue()
        explanation.list(candidates, of: url, deciding: route, isRemote: isRemote, in: table)
        explanation.route = route?.pattern.text
        explanation.action = route?.destinationTitle ?? "\(resolution.target.text)/\(resolution.action.text)"
        if destination == nil { destination = try self.destination(of: resolution, in: table) }
        guard let destination else { return }
        explanation.demands = destination.demands
        let registered = isRemote ? knownModule(of: resolution, destination, in: table)?.name : nil
        switch destination {
        case .action(let endpoint): explanation.module = registered ?? endpoint.generation.name
        case .fallback(.notFound(let endpoint)):
            (explanation.module, explanation.fallback) = (registered ?? endpoint.generation.name, "notFound")
        case .fallback(.program): explanation.fallback = "onMissingTarget"
        case .closure: break
        }
        explanation.parameters = try destination.lendArguments(resolution, besides: given) {
            (entries, _) throws(PluginError) in try self.parameters(entries, of: resolution, destination)
        }
    }
}

/// Everything that a URL matches.
private struct URLCandidates {
    var routes: [RouteEntry] = []
    /// Whether more routes match than are kept.
    var hasMore = false
    /// The action that the URL itself names, if it exists or has a fallback.
    var address: (target: String, action: String)?
    let fallback: RouteEntry?
    let scheme: String

    init(_ url: URLText, _ method: RouteMethod, _ table: Table, _ schemes: Set<String>) {
        var (kept, hasMore): ([RouteEntry], Bool) = ([], false)
        var steps = 0
        var seen: Set<ObjectIdentifier> = []
        _ = table.routes.table.match(url, method, counting: &steps) { route in
            guard seen.insert(ObjectIdentifier(route)).inserted else { return false }
            if kept.count > URLExplanation.mostOthers { hasMore = true } else { kept.append(route) }
            return hasMore
        }
        (routes, self.hasMore) = (kept, hasMore)
        if let (target, action) = url.namedSegments(schemes) {
            let target = plugin_string(target)
            if table.find(target, plugin_string(action)) != nil || table.find(target, plugin_string("notFound")) != nil
            {
                address = (target.text, action.string)
            }
        }
        fallback = table.routes.table.fallback(url, method)?.entry.takeUnretainedValue()
        scheme = url.scheme?.string ?? ""
    }
}

extension URLExplanation {
    /// Lists the candidates other than the one that decides.
    fileprivate mutating func list(
        _ candidates: URLCandidates, of url: URLText, deciding winner: RouteEntry?, isRemote: Bool, in table: Table
    ) {
        var others: [Other] = []
        func add(_ route: RouteEntry, _ reason: String) {
            others.append(
                Other(
                    pattern: route.pattern.text, action: route.destinationTitle, owner: route.owner.description,
                    reason: reason))
        }
        for route in candidates.routes where route !== winner {
            if isRemote, table.remoteDeclaration(of: route) == nil {
                add(route, table.reasonForRefusal(of: route.destinationTitle))
            } else if let winner {
                add(route, route.pattern.rule(precedingBy: winner.pattern, for: url))
            }
        }
        if let (target, action) = candidates.address, winner != nil {
            let isReached = target.withPluginString { target in
                action.withPluginString { action in !isRemote || table.remoteDeclaration(target, action) != nil }
            }
            others.append(
                Other(
                    pattern: "\(candidates.scheme)://\(target)/\(action)", action: "\(target)/\(action)", owner: "",
                    reason: isReached
                        ? "a declared route precedes the action that a URL names itself"
                        : table.reasonForRefusal(of: "\(target)/\(action)")))
        }
        if let fallback = candidates.fallback, fallback !== winner {
            let isReached = !isRemote || table.remoteDeclaration(of: fallback) != nil
            add(
                fallback,
                isReached
                    ? "it is the fallback of its scheme, for URLs that nothing else matches"
                    : table.reasonForRefusal(of: fallback.destinationTitle))
        }
        othersAreComplete = !candidates.hasMore && others.count <= Self.mostOthers
        self.others = Array(others.prefix(Self.mostOthers))
    }
}

extension Table {
    /// Returns the reason why other programs do not reach what a route leads to.
    ///
    /// - Parameter destination: `target/action`, or another title for a closure.
    fileprivate func reasonForRefusal(of destination: String) -> String {
        let names = destination.split(separator: "/", maxSplits: 1).map(String.init)
        if names.count == 2, targets[names[0]]?.actions[names[1]] == nil {
            return "it leads to \(destination.shortened), which no module offers to other programs"
        }
        return "it leads to \(destination.shortened), which other programs may not open: it is not declared remote"
    }
}
