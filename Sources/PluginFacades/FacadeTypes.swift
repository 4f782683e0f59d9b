import PluginABI
import PluginFile

/// The Swift types for what a manifest declares.
struct FacadeTypes {
    private let values: ValueTypes
    /// The Swift names of records, enumerations and object types, as source code, by their names in the manifest.
    private let names: [String: String]
    /// The Swift names that parameters, results and fields use. Members must not hide them.
    let used: Set<String>
    private let cases: [String: [(name: String, value: Value)]]

    /// - Parameters:
    ///   - objects: The Swift names of the object types that the façade contains.
    ///   - types: The Swift names of the records and enumerations, in declared order.
    init(_ manifest: ModuleManifest, objects: [(String, String)], types: [String]) {
        values = manifest.values
        let named = zip(manifest.values.all.map(\.name), types).map { ($0, $1) }
        let names = Dictionary(objects + named) { first, _ in first }
        self.names = names
        var used: Set<String> = []
        for type in manifest.declaredTypes { type.collectNames { if let name = names[$0] { used.insert(name) } } }
        self.used = used
        cases = manifest.values.all.reduce(into: [:]) { all, type in
            guard case .enumeration(let cases) = type.form else { return }
            var names = SwiftNames(reserved: Self.reservedCases)
            all[type.name] = zip(names.take(cases.map(\.name)), cases).map { (SwiftNames.escaped($0), $1.value) }
        }
    }

    private static let reservedCases: Set<String> = [
        "allCases", "AllCases", "hash", "hashValue", "none", "rawValue", "RawValue", "some", "written",
    ]

    /// Returns the type as Swift source code.
    func swiftType(_ type: DeclaredType) -> String {
        switch type {
        case .kind(let kind): kind.swiftType
        case .record(let name): names[name] ?? Value.Kind.map.swiftType
        case .enumeration(let name, let kind): names[name] ?? kind.swiftType
        case .object(let name): names[name] ?? Value.Kind.object.swiftType
        case .list(let element): "[\(swiftType(element))]"
        case .map(let element): "[String: \(swiftType(element))]"
        case .optional(let wrapped): swiftType(wrapped) + "?"
        }
    }

    /// Returns an expression of the type as a `Value`. Unless the type is plain, the expression throws.
    func wrapped(_ expression: String, _ type: DeclaredType) -> String {
        if case .kind(let kind) = type { return kind.wrapped(expression) }
        return "\(expression).written()"
    }

    /// Returns a default as a literal of the Swift type; `nil` if no literal can express it.
    func literal(_ value: Value, _ type: DeclaredType) -> String? {
        switch (type, value) {
        case (.kind, _): return SwiftSource.literal(value)
        case (.optional, .null): return "nil"
        case (.optional(let wrapped), _): return literal(value, wrapped)
        case (.enumeration(let name, _), _): return cases[name]?.first { $0.value == value }.map { ".\($0.name)" }
        case (.list(let element), .list(let values)):
            let literals = values.compactMap { literal($0, element) }
            return literals.count == values.count ? "[" + literals.joined(separator: ", ") + "]" : nil
        case (.map(let element), .map(let entries)):
            let literals = entries.sorted { $0.key < $1.key }.compactMap { key, value in
                literal(value, element).map { "\(SwiftSource.literal(key)): \($0)" }
            }
            return literals.count == entries.count ? SwiftSource.dictionary(literals) : nil
        default: return nil
        }
    }

    // MARK: Declarations

    /// Writes the records and enumerations.
    func write(access: String, to source: inout SwiftSource) {
        for type in values.all {
            let name = names[type.name] ?? ""
            switch type.form {
            case .record(let fields): write(fields, of: type, as: name, access, to: &source)
            case .enumeration(let cases): write(cases, of: type, as: name, access, to: &source)
            }
        }
    }

    private func write(
        _ declared: [ModuleManifest.ValueType.Case], of type: ModuleManifest.ValueType, as name: String,
        _ access: String, to source: inout SwiftSource
    ) {
        let raw = declared.first?.value.kind == .int ? "Int" : "String"
        source.declare(
            "\(access)enum \(name): \(raw), TypedValue, CaseIterable", type.summary,
            notes: ["The enumeration `\(type.name)`."]
        ) { source in
            for (name, value) in cases[type.name] ?? [] {
                source.line("case \(name) = \(SwiftSource.literal(value))")
            }
        }
    }

    private func write(
        _ declared: [ModuleManifest.ValueType.Field], of type: ModuleManifest.ValueType, as name: String,
        _ access: String, to source: inout SwiftSource
    ) {
        var identifiers = SwiftNames(reserved: SwiftNames.used.union(used).union(["hash", "hashValue", "written"]))
        let names = identifiers.take(declared.map(\.name)).map(SwiftNames.escaped)
        let fields = zip(names, declared).map { ($0, $1, swiftType($1.type)) }
        source.declare(
            "\(access)struct \(name): TypedValue, Hashable", type.summary, notes: ["The record `\(type.name)`."]
        ) { source in
            for (name, field, type) in fields {
                source.document(field.summary)
                source.line("\(access)var \(name): \(type)")
            }
            let list = fields.map { name, _, type in "\(name): \(type)\(type.hasSuffix("?") ? " = nil" : "")" }
            source.declare("\(access)init(\(list.joined(separator: ", ")))", "") { source in
                for (name, _, _) in fields { source.line("self.\(name) = \(name)") }
            }
            source.declare("\(access)init(from reader: ValueReader) throws(PluginError)", "") { source in
                if fields.isEmpty { source.line("_ = try reader.get([String: Value].self)") }
                for (name, field, _) in fields {
                    source.line("self.\(name) = try reader.get(\(SwiftSource.literal(field.name)))")
                }
            }
            source.declare("\(access)func written() throws(PluginError) -> Value", "") { source in
                if fields.isEmpty { return source.line(".map([:])") }
                source.line("var fields: [String: Value] = [:]")
                for (name, field, type) in fields {
                    let isOptional = type.hasSuffix("?")
                    let entry = "fields[\(SwiftSource.literal(field.name))] = try "
                    source.line(
                        isOptional
                            ? "if let field = self.\(name) { \(entry)field.written() }"
                            : "\(entry)self.\(name).written()")
                }
                source.line("return .map(fields)")
            }
        }
    }
}

extension ModuleManifest {
    /// The types of all parameters, results and fields.
    fileprivate var declaredTypes: [DeclaredType] {
        let actions = targets.flatMap(\.actions) + types.flatMap(\.actions)
        let fields = values.all.flatMap { type in
            if case .record(let fields) = type.form { return fields.map(\.type) }
            return []
        }
        return actions.flatMap { [$0.resultType] + $0.parameters.map(\.declaredType) } + fields
    }
}

extension DeclaredType {
    fileprivate func collectNames(_ add: (String) -> Void) {
        switch self {
        case .kind: break
        case .record(let name), .enumeration(let name, _), .object(let name): add(name)
        case .list(let element), .map(let element), .optional(let element): element.collectNames(add)
        }
    }
}
