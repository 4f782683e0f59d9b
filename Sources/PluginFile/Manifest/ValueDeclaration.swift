package import PluginABI

extension ModuleManifest {
    /// A record or an enumeration, which parameters and results name as their type.
    package struct ValueType: Sendable, Hashable {
        package var name: String
        package var summary = ""
        package var form: Form

        package enum Form: Sendable, Hashable {
            case record([Field])
            case enumeration([Case])
        }

        /// A field of a record: an entry of a map.
        package struct Field: Sendable, Hashable {
            package var name: String
            package var type: DeclaredType
            package var summary = ""
        }

        /// A case of an enumeration.
        package struct Case: Sendable, Hashable {
            /// The name for generated code.
            package var name: String
            /// A string or an int.
            package var value: Value
        }
    }
}

/// The records and enumerations of a manifest, by name.
package struct ValueTypes: Sendable, Equatable {
    /// The types that can be named, object types included.
    private(set) var names: [String: DeclaredType] = [:]
    /// The types in declared order.
    package private(set) var all: [ModuleManifest.ValueType] = []
    private var positions: [String: Int] = [:]
    /// The fields of each record, for looking them up.
    private(set) var records: [String: Record] = [:]
    /// The values of the cases of each enumeration.
    private(set) var cases: [String: Set<Value>] = [:]

    /// The fields of a record.
    struct Record: Sendable, Equatable {
        let fields: [ModuleManifest.ValueType.Field]
        /// The position of each field in `fields`, by its name.
        let positions: [String: Int]
        /// The fields that cannot be missing.
        let required: [ModuleManifest.ValueType.Field]

        init(_ fields: [ModuleManifest.ValueType.Field]) {
            self.fields = fields
            positions = Dictionary(uniqueKeysWithValues: zip(fields.map(\.name), fields.indices))
            required = fields.filter { !$0.type.canBeMissing }
        }
    }

    package static let countLimit = 1000
    package static let fieldLimit = 256
    package static let caseLimit = 1000
    /// How many fields a record may have, including those of the records in it, except in lists and maps: a value in
    /// Swift consists of all of these.
    package static let spread = 4096

    package init() {}

    package subscript(name: String) -> ModuleManifest.ValueType? { positions[name].map { all[$0] } }

    /// Reads the declarations, and the names of the object types.
    init(_ manifest: ManifestNode) throws(PluginError) {
        for value in try manifest.optional("types", \.list, "a list") ?? [] {
            if let name = value["name"]?.string { names[name] = .object(name) }
        }
        // The names come first, so that declarations can use each other in any order.
        var nodes: [ManifestNode] = []
        _ = try manifest.list("values", "value type") { node throws(PluginError) in
            let name = try node.name()
            try node.check(
                Value.Kind(rawValue: name) == nil, else: "\"\(name)\" is the name of a kind; choose another name")
            try node.check(
                names[name] == nil, else: "the module has an object type of the same name; choose another name")
            try node.checkKeys(["name", "summary", "fields", "cases"])
            try node.check(
                (node["fields"] == nil) != (node["cases"] == nil),
                else: "a record has \"fields\", an enumeration has \"cases\", and it must have one of the two")
            names[name] = node["fields"] != nil ? .record(name) : .enumeration(name, try node.kindOfCases())
            nodes.append(node)
        }
        try manifest.check(
            nodes.count <= Self.countLimit,
            else: "\"values\" has \(nodes.count) types; at most \(Self.countLimit) are accepted")
        for var node in nodes {
            node.values = self
            positions[try node.name()] = all.count
            all.append(try ModuleManifest.ValueType(node))
        }
        for type in all {
            switch type.form {
            case .record(let fields): records[type.name] = Record(fields)
            case .enumeration(let cases): self.cases[type.name] = Set(cases.map(\.value))
            }
        }
        var sizes: [String: Int] = [:]
        for (type, node) in zip(all, nodes) { _ = try size(of: type, node, &sizes) }
    }

    /// Returns how many fields a record consists of.
    ///
    /// - Parameter sizes: The sizes that are known; 0 for a record that is being counted.
    /// - Throws: `invalidManifest` if it contains itself other than in a list or map, or is too large.
    private func size(
        of type: ModuleManifest.ValueType, _ node: ManifestNode, _ sizes: inout [String: Int]
    ) throws(PluginError) -> Int {
        guard case .record(let fields) = type.form else { return 1 }
        if let known = sizes[type.name] {
            try node.check(
                known > 0, else: "the record \(type.name) contains itself; only lists and maps of it can be in it")
            return known
        }
        sizes[type.name] = 0
        var size = 1
        for field in fields {
            var part = field.type
            while case .optional(let wrapped) = part { part = wrapped }
            if case .record(let name) = part, let record = self[name] {
                size += try self.size(of: record, node, &sizes)
            } else {
                size += 1
            }
            try node.check(
                size <= Self.spread,
                else: "the record \(type.name) has more than \(Self.spread) fields, with those of the records in it")
        }
        sizes[type.name] = size
        return size
    }
}

extension ManifestNode {
    /// Returns the kind of the cases of an enumeration: that of the first one.
    fileprivate func kindOfCases() throws(PluginError) -> Value.Kind {
        guard let first = try required("cases", \.list, "a list").first else {
            throw error("\"cases\" is empty; an enumeration has at least one case")
        }
        return (first["value"] ?? first).kind == .int ? .int : .string
    }
}

extension ModuleManifest.ValueType {
    fileprivate init(_ node: ManifestNode) throws(PluginError) {
        name = try node.name()
        summary = try node.summary()
        form = node["fields"] != nil ? .record(try node.fields()) : .enumeration(try node.cases())
    }
}

extension ManifestNode {
    fileprivate func fields() throws(PluginError) -> [ModuleManifest.ValueType.Field] {
        let count = try required("fields", \.list, "a list").count
        try check(
            count <= ValueTypes.fieldLimit,
            else: "\"fields\" has \(count) fields; at most \(ValueTypes.fieldLimit) are accepted")
        var names: Set<String> = []
        return try elements("fields", "field") { node, _ throws(PluginError) in
            try node.checkKeys(["name", "type", "summary"])
            let name = try node.text("name")
            try check(names.insert(name).inserted, else: "the field \(name.shortened) is declared twice")
            let type = try node.type("type")
            try node.check(type != .kind(.null), else: "the type \"null\" is for results only")
            return ModuleManifest.ValueType.Field(name: name, type: type, summary: try node.summary())
        }
    }

    /// Reads the cases, each given by its value, or as an object with `name` and `value`.
    fileprivate func cases() throws(PluginError) -> [ModuleManifest.ValueType.Case] {
        let values = try required("cases", \.list, "a list")
        try check(
            values.count <= ValueTypes.caseLimit,
            else: "\"cases\" has \(values.count) cases; at most \(ValueTypes.caseLimit) are accepted")
        var known: Set<Value> = []
        var cases: [ModuleManifest.ValueType.Case] = []
        for entry in values {
            var value = entry
            var name: String?
            if entry.map != nil {
                let node = try ManifestNode(value: entry, location: "a case", skipsUnknown: skipsUnknown)
                try node.checkKeys(["name", "value"])
                name = try node.text("name")
                value = node["value"] ?? .null
            }
            switch value {
            case .string(let text):
                try check(text.utf8.count <= 256, else: "the case \"\(text.shortened)\" has more than 256 bytes")
                name = name ?? text
            case .int(let number): name = name ?? (number < 0 ? "minus\(number.magnitude)" : "_\(number)")
            default:
                throw error("each case must be a string or a whole number, or an object with \"name\" and \"value\"")
            }
            try check(value.kind == (cases.first?.value.kind ?? value.kind), else: "its cases are of different kinds")
            try check(known.insert(value).inserted, else: "the case \"\(name?.shortened ?? "")\" is declared twice")
            cases.append(ModuleManifest.ValueType.Case(name: name ?? "", value: value))
        }
        return cases
    }

    /// Reads a name that can consist of any characters: the key of a map.
    private func text(_ key: String) throws(PluginError) -> String {
        let text = try string(key)
        try check(
            !text.isEmpty && text.utf8.count <= 256,
            else: "\"\(key)\" must have 1 to 256 bytes, not \(text.utf8.count)")
        return text
    }
}
