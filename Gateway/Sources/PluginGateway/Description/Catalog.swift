import PluginABI
import PluginHost
import Synchronization

/// The part of the modules' declarations that a gateway must know. It is read from the manifests of the modules that
/// serve, and read again after each change of the modules.
final class Catalog: Sendable {
    private struct State {
        var version = 0
        var known: (version: Int, contents: Contents)?
        var typed: (version: (catalog: Int, types: Int), contents: Contents)?
    }

    private let host: PluginHost
    private let types: TypedManifests
    private let state = Mutex(State())
    /// Held while the declarations are read.
    private let reading = Mutex(())

    init(_ host: PluginHost) { (self.host, types) = (host, TypedManifests(host)) }

    /// Notes that the modules have changed.
    func invalidate() { state.withLock { $0.version += 1 } }

    /// The declarations of the modules that serve. After a change, one caller reads them; until it has finished, other
    /// callers get the old ones, or wait if there are none.
    var current: Contents {
        let (version, known) = state.withLock { ($0.version, $0.known) }
        guard let known else { return reading.withLock { _ in read() } }
        if known.version == version { return known.contents }
        return reading.withLockIfAvailable { _ in read() } ?? known.contents
    }

    private func read() -> Contents {
        let (version, known) = state.withLock { ($0.version, $0.known) }
        if let known, known.version == version { return known.contents }
        let contents = Contents(host, nil)
        state.withLock { $0.known = (version, contents) }
        return contents
    }

    /// The declarations with the types that modules derive from their code, as far as they are known within a second.
    /// For descriptions only: how calls are made does not depend on when, or whether, types were derived.
    func typed() async -> Contents {
        let version = state.withLock { $0.version }
        await types.derive(version, within: .seconds(1))
        return reading.withLock { _ in
            let wanted = (catalog: state.withLock { $0.version }, types: types.version)
            if let typed = state.withLock(\.typed), typed.version == wanted { return typed.contents }
            let contents = Contents(host, types)
            state.withLock { $0.typed = (wanted, contents) }
            return contents
        }
    }

    /// The declarations at one time. They do not change once they have been read, hence `@unchecked Sendable`.
    final class Contents: @unchecked Sendable {
        private(set) var modules: [Module] = []
        /// What other hosts can mount.
        let offered: OfferedModules
        /// The position of each target in ``modules`` and in the module's targets.
        private var positions: [String: (module: Int, target: Int)] = [:]
        /// The remote actions, by target and action: `Shop/item`.
        private var actions: [String: KnownAction] = [:]
        /// The schemes of HTTP for which there are routes.
        private(set) var schemes: [String] = []
        /// The routes of HTTP; those for any host come first.
        private(set) var routes: [Route] = []
        /// How the routes of each pattern answer the methods.
        private var methods: [String: RouteMethods] = [:]
        /// What is known about where URLs lead.
        private let destinations = Mutex<[URLDestination: KnownDestination]>([:])
        private static let destinationLimit = 10_000

        fileprivate init(_ host: PluginHost, _ types: TypedManifests?) {
            for status in host.modules where status.state == .active || status.state == .registered {
                guard let name = status.name, let manifest = try? host.servedManifest(of: name),
                    let value = types.map({ $0.manifest(name, manifest) }) ?? (try? Value(json: manifest.text))
                else { continue }
                modules.append(Module(name, value, isInProcess: status.runsInProcess))
            }
            offered = OfferedModules(modules.compactMap(\.offer))
            for (number, module) in modules.enumerated() {
                for (position, target) in module.targets.enumerated() {
                    positions[target.name] = (number, position)
                    for action in target.actions where action.isRemote {
                        actions["\(target.name)/\(action.name)"] = KnownAction(
                            action, mayShareThreads: module.isInProcess && !action.isAsync)
                    }
                }
            }
            let routes = host.routes.filter { $0.problem == nil && Self.isHTTP($0.pattern) }
            for scheme in ["https", "http"]
            where routes.contains(where: { $0.pattern.hasPrefix("\(scheme)://") || $0.pattern.hasPrefix("//") }) {
                schemes.append(scheme)
            }
            var schemas: [String: SchemaTypes] = [:]
            let declared = routes.map { route in
                let names = route.action.split(separator: "/").map(String.init)
                guard names.count == 2, let found = action(names[0], names[1]) else { return Route(route, nil) }
                let known = schemas[found.module.name] ?? SchemaTypes(found.module)
                schemas[found.module.name] = known
                return Route(route, (found.action, known))
            }
            for route in declared {
                if let method = route.method {
                    methods[route.pattern, default: RouteMethods()].stated.insert(method)
                } else {
                    methods[route.pattern, default: RouteMethods()].unstated.formUnion(route.methods)
                }
            }
            self.routes = declared.sorted { ($0.isOfOneHost ? 1 : 0) < ($1.isOfOneHost ? 1 : 0) }
        }

        private static func isHTTP(_ pattern: String) -> Bool {
            ["https://", "http://", "//"].contains { pattern.hasPrefix($0) }
        }

        /// Finds where a URL leads for a caller from outside.
        ///
        /// - Throws: The error of opening the URL, if it leads nowhere.
        func destination(
            of url: String, _ method: RouteMethod, _ gateway: PluginGateway
        ) throws(PluginError) -> KnownDestination {
            let found = try gateway.host.destination(of: url, method: method, origin: .remote)
            if let known = destinations.withLock({ $0[found] }), gateway.countedActions.isLast(known.change) {
                return known
            }
            let methods = found.route.map { self.methods[$0] ?? RouteMethods(unstated: [.get, .post]) }
            let made = KnownDestination(found, methods ?? RouteMethods(), actions[found.action], gateway)
            // The names of actions that only a fallback answers are those that clients think of.
            if found.route != nil || found.fallback == nil {
                destinations.withLock { destinations in
                    if destinations.count >= Self.destinationLimit { destinations = [:] }
                    destinations[found] = made
                }
            }
            return made
        }

        /// Returns an action with its module, if it is remote: others do not exist for HTTP.
        func action(_ target: String, _ action: String) -> (module: Module, action: Action)? {
            guard let position = positions[target] else { return nil }
            let module = modules[position.module]
            guard let found = module.targets[position.target].actions.first(where: { $0.name == action }),
                found.isRemote
            else { return nil }
            return (module, found)
        }

        /// Whether the only action of a target is a remote fallback, as for a target of another host that has not been
        /// reached.
        func hasOnlyFallback(_ target: String) -> Bool {
            guard let position = positions[target] else { return false }
            let actions = modules[position.module].targets[position.target].actions
            return actions.count == 1 && actions[0].isFallback && actions[0].isRemote
        }
    }

    /// An action with what calls of it need.
    final class KnownAction: Sendable {
        let action: Action
        /// Whether the action is synchronous, and runs in this process, so that its calls can be short.
        let mayShareThreads: Bool

        fileprivate init(_ action: Action, mayShareThreads: Bool) {
            (self.action, self.mayShareThreads) = (action, mayShareThreads)
        }
    }

    /// How a route answers a method.
    enum RouteAnswer: Sendable {
        /// The route does not answer the method.
        case none
        /// The route states the method.
        case stated
        /// The route states no method.
        case unstated
    }

    /// How the routes of one pattern answer the methods. A route that states no method answers GET and POST: it was
    /// written for URLs of any kind, which are not meant to change or remove anything.
    struct RouteMethods: Sendable {
        /// The methods that routes state.
        var stated: Set<RouteMethod> = []
        /// The methods of routes that state none.
        var unstated: Set<RouteMethod> = []

        func answer(_ method: RouteMethod) -> RouteAnswer {
            if stated.contains(method) { return .stated }
            return unstated.contains(method) ? .unstated : .none
        }
    }

    /// A route of HTTP.
    struct Route: Sendable {
        let pattern: String
        let action: String
        let summary: String
        let defaults: [String: Value]

        let template: RouteTemplate
        /// The only method that the route answers; `nil` if it states none.
        let method: RouteMethod?
        /// The methods that the route answers, in the order in which they are shown.
        let methods: [RouteMethod]

        fileprivate init(_ route: RouteStatus, _ destination: (action: Action, types: SchemaTypes)?) {
            (pattern, action, summary, defaults) = (route.pattern, route.action, route.summary, route.defaults)
            let template = RouteTemplate(route.pattern)
            self.template = template
            let isReadable = destination.map {
                Self.isReadable($0.action, $0.types, template, route.defaults)
            }
            method = route.method
            methods = route.method.map { [$0] } ?? (isReadable ?? true ? [.get, .post] : [.post])
        }

        /// Whether a request without a body can give all that the action requires.
        private static func isReadable(
            _ action: Action, _ types: SchemaTypes, _ template: RouteTemplate, _ defaults: [String: Value]
        ) -> Bool {
            // The groups of a pattern that is not a template can give everything.
            guard let names = template.paths.map(\.names).min(by: { $0.count < $1.count }) else { return true }
            return action.parameters.allSatisfy { parameter in
                !parameter.isRequired || names.contains(parameter.name) || defaults[parameter.name] != nil
                    || types.isText(parameter.type) || parameter.isCallback
            }
        }

        fileprivate var isOfOneHost: Bool { template.host != nil }
    }

    /// A module that serves.
    struct Module: Sendable {
        let name: String
        let version: String
        let targets: [Target]
        /// The records and enumerations, as the manifest declares them.
        let values: [Value]
        /// The names of the object types.
        let types: Set<String>
        /// The names of the object types that are cursors.
        let cursors: Set<String>
        /// The part of the module that other hosts can mount; `nil` if there is none.
        let offer: Value?
        /// Whether the module is started, and its code runs in this process.
        let isInProcess: Bool

        fileprivate init(_ name: String, _ manifest: Value, isInProcess: Bool) {
            (self.name, self.isInProcess) = (name, isInProcess)
            offer = OfferedModules.offer(manifest)
            version = manifest["version"]?.string ?? ""
            targets = (manifest["targets"]?.list ?? []).map(Target.init)
            values = manifest["values"]?.list ?? []
            let declared = manifest["types"]?.list ?? []
            types = Set(declared.compactMap { $0["name"]?.string })
            cursors = Set(
                declared.filter { type in (type["actions"]?.list ?? []).contains { $0["name"] == "next" } }
                    .compactMap { $0["name"]?.string })
        }
    }

    struct Target: Sendable {
        let name: String
        let summary: String
        let actions: [Action]

        fileprivate init(_ node: Value) {
            name = node["name"]?.string ?? ""
            summary = node["summary"]?.string ?? ""
            actions = (node["actions"]?.list ?? []).map(Action.init)
        }
    }

    struct Action: Sendable {
        let name: String
        let summary: String
        let isRemote: Bool
        let isIdempotent: Bool
        let isAsync: Bool
        let hasRest: Bool
        /// The text of the result's type; empty if the manifest does not name it.
        let result: String
        var parameters: [Parameter]
        /// The parameters for which a client can give a callback.
        let callbacks: [Parameter]

        fileprivate init(_ node: Value) {
            name = node["name"]?.string ?? ""
            summary = node["summary"]?.string ?? ""
            isRemote = node["remote"].map { $0.bool ?? true } ?? false
            isIdempotent = node["idempotent"]?.bool ?? false
            isAsync = node["async"]?.bool ?? false
            hasRest = node["rest"] != nil && node["rest"]?.bool != false
            result = node["result"]?.string ?? ""
            parameters = (node["parameters"]?.list ?? []).map(Parameter.init)
            callbacks = parameters.filter(\.isCallback)
        }

        /// Whether the action handles calls of actions that do not exist. It cannot be called by its own name.
        var isFallback: Bool { name == "notFound" }

        /// Whether a client can give a callback.
        var hasCallback: Bool { !callbacks.isEmpty }

        /// The name of the only parameter of the kind bytes; `nil` if there is none, or more than one.
        var bodyParameter: String? {
            let names = parameters.filter(\.isBytes).map(\.name)
            return names.count == 1 ? names[0] : nil
        }

        /// Returns the parameters of a JSON body, as the action takes them; see ``Parameter/decoding(_:_:)``.
        func decoding(_ entries: [String: Value], _ callbacks: CallbackMaker?) throws(Problem) -> [String: Value] {
            var entries = entries
            for parameter in parameters where parameter.isDecoded {
                if let value = entries[parameter.name] {
                    entries[parameter.name] = try parameter.decoding(value, callbacks)
                }
            }
            return entries
        }

        /// Returns the parameters of a JSON body in order, with bytes read from their base64.
        func decoding(_ values: [Value], _ callbacks: CallbackMaker?) throws(Problem) -> [Value] {
            var values = values
            for (position, parameter) in parameters.prefix(values.count).enumerated()
            where parameter.isDecoded {
                values[position] = try parameter.decoding(values[position], callbacks)
            }
            return values
        }
    }

    struct Parameter: Sendable {
        let name: String
        let summary: String
        let type: String
        private(set) var isRequired: Bool
        private(set) var fallback: Value?
        /// Whether null stands for no value.
        private(set) var acceptsNull: Bool

        /// Returns the same parameter, made optional, with a default.
        func optional(_ fallback: Value?) -> Parameter {
            var parameter = self
            (parameter.isRequired, parameter.fallback, parameter.acceptsNull) = (false, fallback, acceptsNull)
            return parameter
        }

        var isBytes: Bool { type == "bytes" || type == "bytes?" }
        /// Whether a client can give a callback for the parameter.
        var isCallback: Bool { type == "object" || type == "object?" }

        /// Whether ``decoding(_:_:)`` makes something else of a value.
        var isDecoded: Bool { isBytes || isCallback || type == "double" }

        /// Returns bytes for their base64, a callback for the name of its events, a double for a whole number, and
        /// other values as they are.
        func decoding(_ value: Value, _ callbacks: CallbackMaker?) throws(Problem) -> Value {
            // A number in JSON is the nearest double, even if it has no fraction.
            if type == "double", let number = value.int { return .double(Double(number)) }
            guard let text = value.string, type != "double" else { return value }
            if isCallback {
                guard let callbacks else { throw Problem(.notAcceptable, Self.noEvents) }
                return try callbacks.callback(text, for: name)
            }
            guard let bytes = Bytes(base64: text) else {
                throw Problem(.mistypedParameter, "The parameter “\(name)” is not valid base64.")
            }
            return .bytes(bytes)
        }

        private static let noEvents =
            "Calls of a callback are sent as events. Send GET or POST, and accept them: Accept: text/event-stream."

        fileprivate init(_ node: Value) {
            name = node["name"]?.string ?? ""
            summary = node["summary"]?.string ?? ""
            type = node["type"]?.string ?? "any"
            isRequired = node["required"]?.bool ?? false
            fallback = node["default"]
            acceptsNull = !isRequired
        }
    }
}

extension ModuleStatus {
    /// Whether the module is started, and its code runs in this process. Modules that the program has registered may
    /// stand for code elsewhere.
    fileprivate var runsInProcess: Bool { state == .active && process == nil && restarts == 0 && file != "(program)" }
}
