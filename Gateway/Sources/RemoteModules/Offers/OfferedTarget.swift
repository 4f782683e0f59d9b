import PluginABI

/// A target of the other host: how its manifest declares it, and how the module that stands for it declares it.
struct OfferedTarget: Sendable {
    struct Parameter: Sendable {
        let name: String
        let type: String
        let isRequired: Bool

        var isBytes: Bool { type == "bytes" || type == "bytes?" }
        var isCallback: Bool { type == "object" || type == "object?" }
    }

    struct Action: Sendable {
        let name: String
        let isAsync: Bool
        let isIdempotent: Bool
        let hasRest: Bool
        let result: String
        let parameters: [Parameter]
    }

    let name: String
    /// The name and the version of the module that offers the target.
    let module: String
    let version: String
    let actions: [Action]
    /// An object type whose objects are cursors.
    struct Cursor: Sendable {
        /// The type of the cursor's elements.
        let element: String
        /// Whether the cursor's action `next` is asynchronous.
        let isAsync: Bool
    }

    /// The object types that are cursors, by their names. Other objects cannot leave their host.
    let cursors: [String: Cursor]
    let otherObjects: Set<String>
    let records: Records
    /// The manifest of the module that stands for it, in JSON.
    let manifest: String

    /// The type of cursors that actions return without declaring a type.
    static let plainCursor = "remote.Cursor"

    /// - Parameters:
    ///   - target: The target, as the other host describes it.
    ///   - module: Its module.
    ///   - configuration: The settings of the mount.
    ///   - origin: The URL of the other host, for messages.
    /// - Throws: `invalidManifest` if the description is not valid.
    init(
        _ target: Value, of module: Value, _ configuration: RemoteConfiguration, from origin: String
    ) throws(PluginError) {
        name = try Self.name(target, "a target")
        self.module = try Self.name(module, "a module")
        version = module["version"]?.string ?? ""
        let actions = target["actions"]?.list ?? []
        guard !actions.isEmpty, actions.count <= 10_000 else {
            throw Self.invalid("the target “\(name)” has \(actions.count) actions; 1 to 10,000 are possible")
        }
        self.actions = try actions.map { action throws(PluginError) in try Self.action(action) }
        var (cursors, others): ([String: Cursor], Set<String>) = ([:], [])
        var types: [Value] = [Self.cursor(Self.plainCursor, isAsync: false)]
        for type in module["types"]?.list ?? [] {
            let name = try Self.name(type, "a type")
            // The type of another mount: the other host has mounted the target itself.
            if name == Self.plainCursor { continue }
            if let next = (type["actions"]?.list ?? []).first(where: { $0["name"] == "next" }) {
                let isAsync = next["async"]?.bool ?? false
                cursors[name] = Cursor(element: next["result"]?.string ?? "any", isAsync: isAsync)
                types.append(Self.cursor(name, isAsync: isAsync))
            } else {
                others.insert(name)
                types.append(["name": .string(name), "actions": []])
            }
        }
        (self.cursors, otherObjects) = (cursors, others)
        let values = module["values"]?.list ?? []
        records = Self.records(values)
        let isRemote = configuration.isReexported
        var own = target.keeping(["name", "summary"])
        own["actions"] = .list(actions.map { Self.declaration($0, isRemote: isRemote) })
        var manifest: [String: Value] = [
            "name": .string(configuration.modulePrefix + name), "version": .string(version),
            "summary": .string("Stands for “\(name)” of \(self.module), from \(origin)"), "targets": [.map(own)],
            "types": .list(types),
        ]
        if !values.isEmpty { manifest["values"] = .list(values) }
        self.manifest = Value.map(manifest).json
    }

    private static func invalid(_ what: String) -> PluginError {
        PluginError(.invalidManifest, "The description of the other host's modules is not valid: \(what).")
    }

    private static func name(_ node: Value, _ what: String) throws(PluginError) -> String {
        guard let name = node["name"]?.string, ForeignText.isName(name) else {
            throw invalid("\(what) has no valid name")
        }
        return name
    }

    private static func action(_ node: Value) throws(PluginError) -> Action {
        let name = try name(node, "an action")
        let parameters = try (node["parameters"]?.list ?? []).map { parameter throws(PluginError) in
            Parameter(
                name: try Self.name(parameter, "a parameter of “\(name)”"), type: parameter["type"]?.string ?? "any",
                isRequired: parameter["required"]?.bool ?? false)
        }
        return Action(
            name: name, isAsync: node["async"]?.bool ?? false, isIdempotent: node["idempotent"]?.bool ?? false,
            hasRest: node["rest"]?.bool ?? (node["rest"] != nil), result: node["result"]?.string ?? "any",
            parameters: parameters)
    }

    private static func cursor(_ name: String, isAsync: Bool) -> Value {
        ["name": .string(name), "actions": [["name": "next", "async": .bool(isAsync)]]]
    }

    /// Returns the declaration of an action for this host: that of the other host, without what has no meaning here.
    private static func declaration(_ node: Value, isRemote: Bool) -> Value {
        var names = ["name", "summary", "async", "idempotent", "parameters", "rest", "result"]
        if isRemote { names.append("demands") }
        var action = node.keeping(names)
        if isRemote { action["remote"] = true }
        return .map(action)
    }

    private static func records(_ values: [Value]) -> Records {
        var records: Records = [:]
        for value in values {
            guard let name = value["name"]?.string, let fields = value["fields"]?.list else { continue }
            for field in fields {
                guard let key = field["name"]?.string, let type = field["type"]?.string else { continue }
                records[name, default: [:]][key] = type
            }
        }
        return records
    }
}

extension OfferedTarget {
    /// The type of the objects that stand for the cursors which an action returns.
    func cursorType(of action: Action) -> String {
        let type = action.result.hasSuffix("?") ? String(action.result.dropLast()) : action.result
        return cursors[type] == nil ? Self.plainCursor : type
    }

    /// Returns the manifest of the module that stands for a target while the other host does not offer it. Its only
    /// action is the fallback for all others.
    static func placeholder(_ name: String, _ configuration: RemoteConfiguration, from origin: String) -> String {
        var fallback: [String: Value] = ["name": "notFound", "rest": true]
        // So that remote callers get the reason, too.
        if configuration.isReexported { fallback["remote"] = true }
        let manifest: Value = [
            "name": .string(configuration.modulePrefix + name), "version": "0.0.0",
            "summary": .string("Stands for “\(name)” from \(origin), which has not been reached"),
            "targets": [["name": .string(name), "actions": [.map(fallback)]]],
        ]
        return manifest.json
    }
}

extension Value {
    /// The entries with these names.
    fileprivate func keeping(_ names: [String]) -> [String: Value] {
        (map ?? [:]).filter { names.contains($0.key) }
    }
}
