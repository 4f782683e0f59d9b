import PluginABI

/// The types of a module as JSON schemas. A record or enumeration is named by its module, a dot and its own name.
struct SchemaTypes {
    private let module: String
    private let names: Set<String>
    private let objects: Set<String>
    private let enumerations: Set<String>
    private(set) var schemas: [String: Value] = [:]

    init(_ module: Catalog.Module) {
        self.module = module.name
        objects = module.types
        enumerations = Set(module.values.filter { $0["cases"] != nil }.compactMap { $0["name"]?.string })
        names = Set(module.values.compactMap { $0["name"]?.string })
        for value in module.values {
            guard let name = value["name"]?.string else { continue }
            var schema = value["cases"] == nil ? record(value) : Self.enumeration(value)
            if let summary = value["summary"]?.string { schema["description"] = .string(summary) }
            schemas["\(self.module).\(name)"] = .map(schema)
        }
    }

    private func record(_ value: Value) -> [String: Value] {
        var properties: [String: Value] = [:]
        var required: [Value] = []
        for field in value["fields"]?.list ?? [] {
            guard let name = field["name"]?.string, let type = field["type"]?.string else { continue }
            var schema = self.schema(type).map ?? [:]
            if let summary = field["summary"]?.string { schema["description"] = .string(summary) }
            properties[name] = .map(schema)
            if type != "any", !type.hasSuffix("?") { required.append(.string(name)) }
        }
        return ["type": "object", "properties": .map(properties), "required": .list(required)]
    }

    private static func enumeration(_ value: Value) -> [String: Value] {
        ["enum": .list((value["cases"]?.list ?? []).map { $0["value"] ?? $0 })]
    }

    /// Whether a text names an object type, or is `object`, the kind of all objects.
    func isObject(_ text: String) -> Bool {
        let name = text.hasSuffix("?") ? String(text.dropLast()) : text
        return name == "object" || objects.contains(name)
    }

    private static let base64 =
        "^([A-Za-z0-9+/]{4})*([A-Za-z0-9+/][AQgw]==|[A-Za-z0-9+/]{2}[AEIMQUYcgkosw048]=)?$"

    /// Whether the values of a type can be written in a query.
    func isText(_ text: String) -> Bool {
        let name = text.hasSuffix("?") ? String(text.dropLast()) : text
        let texts = ["bool", "int", "double", "string", "bytes", "list", "list<string>", "any"]
        return texts.contains(name) || name.hasPrefix("list<") || enumerations.contains(name)
    }

    /// Returns the schema of a type, as it is written in a manifest.
    func schema(_ text: String) -> Value {
        if text.hasSuffix("?") { return ["anyOf": [schema(String(text.dropLast())), ["type": "null"]]] }
        if text.hasPrefix("list<") { return ["type": "array", "items": schema(String(text.dropFirst(5).dropLast()))] }
        if text.hasPrefix("map<") {
            return ["type": "object", "additionalProperties": schema(String(text.dropFirst(4).dropLast()))]
        }
        switch Value.Kind(rawValue: text) {
        case .bool: return ["type": "boolean"]
        case .int: return ["type": "integer", "minimum": .int(.min), "maximum": .int(.max)]
        case .double: return ["type": "number"]
        case .string: return ["type": "string"]
        case .bytes: return ["type": "string", "contentEncoding": "base64", "pattern": .string(Self.base64)]
        case .list: return ["type": "array"]
        case .map: return ["type": "object"]
        case .null: return ["type": "null"]
        case .any, .object: return [:]
        case nil: return names.contains(text) ? ["$ref": .string("#/components/schemas/\(module).\(text)")] : [:]
        }
    }
}
