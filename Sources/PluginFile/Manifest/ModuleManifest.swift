package import PluginABI

/// The manifest of a module, read from the JSON in its description. `manifest.schema.json` describes the same format.
package struct ModuleManifest: Sendable, Equatable {
    package var name: String
    package var version: SemanticVersion
    package var summary = ""
    package var concurrency = Concurrency.concurrent
    package var level = Level.normal
    /// The priority among modules of the same level. Modules with a higher number come first.
    package var priority = 0
    package var targets: [Target] = []
    package var types: [ObjectType] = []
    /// The records and enumerations that are types of parameters and results.
    package var values = ValueTypes()
    package var routes: [Route] = []
    package var services: [Service] = []
    /// The subscriptions: actions that are named like the events.
    package var events: [Action] = []
    /// The interceptors. Each intercepts the calls for which the host's configuration names it.
    package var interceptors: [Action] = []
    package var hooks: [Hook] = []
    /// The hooks that are asynchronous.
    package var asyncHooks: Set<Hook> = []
    /// Whether the module owns something that only one generation can have at a time, such as a port.
    package var isExclusive = false
    /// Whether the module keeps nothing between calls that it would miss.
    package var isStateless = false
    /// The modules and services that the module requires.
    package var requirements: [Requirement] = []
    /// The permissions that the module needs if it is isolated.
    package var permissions: [Permission] = []
    /// Whether the module must be isolated.
    package var isolation = IsolationDemand.optional
    /// When the module starts in a host that starts modules when they are first needed.
    package var start = Start.automatic
    /// The lowest minor version of the binary interface that the module needs.
    package var abiMinor = 0

    /// Whether calls may overlap.
    package enum Concurrency: String, Sendable, CaseIterable { case concurrent, serial }

    /// When a module starts in a host that starts modules when they are needed. For `automatic`, its hooks, its
    /// subscriptions and whether it is exclusive decide.
    package enum Start: String, Sendable, CaseIterable { case automatic, eager, lazy }

    /// The levels of modules, in the order in which they start.
    package enum Level: String, Sendable, CaseIterable { case basic, normal }

    /// How the instances of a target are made.
    package enum Instance: String, Sendable, CaseIterable { case none, shared, perCall }

    /// A group of actions under one name.
    package struct Target: Sendable, Equatable {
        package var name: String
        package var summary = ""
        package var instance = Instance.none
        /// The target's own concurrency, or the module's.
        package var concurrency = Concurrency.concurrent
        package var actions: [Action] = []
    }

    /// A type of objects that the module makes.
    package struct ObjectType: Sendable, Equatable {
        package var name: String
        package var summary = ""
        package var actions: [Action] = []
    }

    package struct Action: Sendable, Hashable {
        package var name: String
        package var summary = ""
        package var isAsync = false
        /// Whether other programs may call the action.
        package var isRemote = false
        /// Whether calling the action twice with the same parameters has the effect of calling it once.
        package var isIdempotent = false
        /// The demands on other programs that call the action: names such as `login`, which the program's guard checks.
        package var demands: [String] = []
        package var parameters: [Parameter] = []
        /// Whether the action accepts parameters that it does not declare.
        package var hasRest = false
        /// The kind of the result.
        package var result = Value.Kind.any
        /// The declared type of the result.
        package var resultType = DeclaredType.kind(.any)
        /// The beginning of the names of the events that it handles in the chain, empty for all; `nil` if it does not
        /// handle events by prefix.
        package var handles: String?
    }

    package struct Parameter: Sendable, Hashable {
        package var name: String
        /// The kind, which the host checks.
        package var type: Value.Kind
        /// The declared type of the parameter.
        package var declaredType: DeclaredType
        package var isRequired = false
        /// The default of an optional parameter, as a value of its type.
        package var defaultValue: Value?
        package var summary = ""

        package init(
            name: String, type: Value.Kind, isRequired: Bool = false, defaultValue: Value? = nil, summary: String = ""
        ) {
            (self.name, self.type, self.isRequired) = (name, type, isRequired)
            declaredType = .kind(type)
            (self.defaultValue, self.summary) = (defaultValue, summary)
        }
    }

    /// Reads and checks a manifest.
    ///
    /// - Parameters:
    ///   - text: The JSON. Used only during the call.
    ///   - abiMinor: The minor version of the binary interface that the module was built for. If it is newer than the
    ///     host's, keys and hooks that the host does not know are skipped.
    /// - Throws: `invalidManifest`, naming the target, action and parameter that is wrong; `incompatible` if the module
    ///   needs a newer binary interface than the host's.
    package init(parsing text: UnsafeRawBufferPointer, abiMinor: UInt16) throws(PluginError) {
        guard text.count <= Int(PLUGIN_MANIFEST_MAX_BYTES) else {
            throw PluginError(
                .invalidManifest,
                "The manifest is \(text.count) bytes long; at most \(PLUGIN_MANIFEST_MAX_BYTES) are accepted.")
        }
        var node = try ManifestNode(
            value: try JSONText.parse(text, code: .invalidManifest, what: "The manifest"), location: "",
            skipsUnknown: abiMinor > UInt16(PLUGIN_ABI_MINOR))
        try node.checkKeys([
            "name", "version", "summary", "concurrency", "level", "priority", "targets", "types", "values", "routes",
            "services", "events", "interceptors", "hooks", "exclusive", "requires", "permissions", "isolation",
            "start", "stateless", "abiMinor",
        ])
        name = try node.name()
        version = try node.version()
        self.abiMinor = try node.abiMinor(of: "\(name) \(version)")
        summary = try node.summary()
        concurrency = try node.choice("concurrency", default: .concurrent)
        level = try node.choice("level", default: .normal)
        priority = try node.optional("priority", \.int, "a whole number") ?? 0
        values = try ValueTypes(node)
        node.values = values
        targets = try node.list("targets", "target") { [concurrency] target throws(PluginError) in
            try Target(target, concurrency)
        }
        types = try node.list("types", "type", ObjectType.init)
        routes = try node.routes(to: targets)
        services = try node.services(of: targets)
        events = try node.list("events", "event", Action.init(subscription:))
        interceptors = try node.list("interceptors", "interceptor", Action.init(interceptor:))
        (hooks, asyncHooks) = try node.hooks()
        isExclusive = try node.isExclusive(with: hooks)
        requirements = try node.requirements(of: name, offering: services)
        permissions = try node.permissions()
        isolation = try node.choice("isolation", default: .optional)
        start = try node.choice("start", default: .automatic)
        isStateless = try node.flag("stateless")
    }
}

extension ModuleManifest.Target {
    fileprivate init(_ node: ManifestNode, _ moduleConcurrency: ModuleManifest.Concurrency) throws(PluginError) {
        try node.checkKeys(["name", "summary", "instance", "concurrency", "actions"])
        name = try node.name()
        summary = try node.summary()
        instance = try node.choice("instance", default: ModuleManifest.Instance.none)
        concurrency = try node.choice("concurrency", default: moduleConcurrency)
        actions = try node.actions()
    }
}

extension ModuleManifest.ObjectType {
    /// Reads and checks the declaration of a type that is not part of a manifest.
    ///
    /// - Throws: `invalidManifest`, naming the action and parameter that is wrong.
    package init(parsing text: String) throws(PluginError) {
        let what = "the declaration of an object type"
        let value = try text.utf8Span.span.withUnsafeBytes { bytes throws(PluginError) in
            try JSONText.parse(bytes, code: .invalidManifest, what: "The declaration of an object type")
        }
        let location = "type \(value["name"]?.string?.shortened ?? "")"
        try self.init(ManifestNode(value: value, location: location, skipsUnknown: false, document: what))
    }

    fileprivate init(_ node: ManifestNode) throws(PluginError) {
        try node.checkKeys(["name", "summary", "actions"])
        name = try node.name()
        summary = try node.summary()
        actions = try node.actions()
        if let action = actions.first(where: \.isRemote) {
            throw node.error("the action \(action.name) is declared remote, but only actions of targets can be")
        }
    }
}

extension ModuleManifest.Action {
    fileprivate init(_ node: ManifestNode) throws(PluginError) {
        try node.checkKeys([
            "name", "summary", "async", "remote", "idempotent", "demands", "parameters", "rest", "result", "handles",
        ])
        name = try node.name()
        summary = try node.summary()
        isAsync = try node.flag("async")
        isRemote = try node.flag("remote")
        isIdempotent = try node.flag("idempotent")
        demands = try node.demands()
        try node.check(
            demands.isEmpty || isRemote,
            else: "it has \"demands\", which other programs must satisfy, but is not declared remote")
        parameters = try node.list("parameters", "parameter", ModuleManifest.Parameter.init)
        hasRest = try node.flag("rest")
        resultType = try node.type("result", default: .kind(.any))
        result = resultType.kind
        handles = try node.optional("handles", \.string, "a string")
        if let handles, !handles.isEmpty { _ = try node.name(checking: handles) }
        try node.check(
            !isRemote || !name.lowercased().hasPrefix("native"),
            else:
                "it is declared remote, but actions whose names begin with \"native\" are for calls within the program")
    }

    /// Reads an action of the interface of a service.
    init(inInterface node: ManifestNode) throws(PluginError) {
        try node.checkKeys(["name", "summary", "async", "idempotent", "parameters", "rest", "result"])
        try self.init(node)
    }

    /// Reads a subscription: an action that is performed when an event of its name is posted.
    fileprivate init(subscription node: ManifestNode) throws(PluginError) {
        try node.checkKeys(["name", "summary", "async", "parameters", "rest"])
        try self.init(node)
    }

    /// Reads an interceptor. All interceptors have the same parameters.
    fileprivate init(interceptor node: ManifestNode) throws(PluginError) {
        try node.checkKeys(["name", "summary", "async"])
        try self.init(node)
        parameters = [
            ModuleManifest.Parameter(name: "call", type: .map, isRequired: true),
            ModuleManifest.Parameter(name: "next", type: .object, isRequired: true),
        ]
    }
}

extension ModuleManifest.Parameter {
    fileprivate init(_ node: ManifestNode) throws(PluginError) {
        try node.checkKeys(["name", "type", "required", "default", "summary"])
        name = try node.name()
        declaredType = try node.type("type")
        type = declaredType.kind
        try node.check(type != .null, else: "the type \"null\" is for results only")
        if case .optional(let wrapped) = declaredType {
            throw node.error(
                "a parameter cannot be of type \"\(declaredType)\": write \"\(wrapped)\", without \"required\"")
        }
        isRequired = try node.flag("required")
        summary = try node.summary()
        guard let value = node["default"] else { return }
        try node.check(!isRequired, else: "it is required and has a default; only optional parameters can have one")
        defaultValue = try Self.convert(value, to: type, node)
        if let mismatch = node.values.mismatch(of: defaultValue ?? .null, declaredType, at: "default") {
            throw node.error("its \(mismatch)")
        }
    }

    /// Converts a default to a value of the declared type.
    private static func convert(
        _ value: Value, to type: Value.Kind, _ node: ManifestNode
    ) throws(PluginError) -> Value {
        switch (type, value) {
        case (.any, _), (.bool, .bool), (.int, .int), (.double, .double), (.string, .string), (.list, .list),
            (.map, .map):
            return value
        case (.double, .int(let number)): return .double(Double(number))
        case (.bytes, .string(let text)):
            guard let bytes = Bytes(base64: text) else {
                throw node.error("its default must be base64 text, because its type is bytes")
            }
            return .bytes(bytes)
        case (.object, _): throw node.error("its type is object, and objects cannot have defaults")
        default:
            throw node.error("its default is of type \(value.kind.rawValue), but its type is \(type.rawValue)")
        }
    }
}

extension ManifestNode {
    /// Reads the words that an action demands of other programs.
    fileprivate func demands() throws(PluginError) -> [String] {
        var demands: [String] = []
        for value in try optional("demands", \.list, "a list of words") ?? [] {
            guard case .string(let word) = value else { throw error("\"demands\" must be a list of words") }
            let demand = try name(checking: word)
            try check(!demands.contains(demand), else: "\"demands\" contains \"\(demand.shortened)\" twice")
            demands.append(demand)
        }
        return demands
    }

    fileprivate func actions() throws(PluginError) -> [ModuleManifest.Action] {
        let actions = try list("actions", "action", ModuleManifest.Action.init(_:))
        var handlers: [String: String] = [:]
        for action in actions {
            guard let prefix = action.handles, let other = handlers.updateValue(action.name, forKey: prefix) else {
                continue
            }
            let events = prefix.isEmpty ? "all events" : "all events that begin with \"\(prefix.shortened)\""
            throw error("the actions \(other) and \(action.name) both handle \(events)")
        }
        return actions
    }
}
