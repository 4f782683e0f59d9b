internal import PluginABI
internal import PluginFile

/// The types in the manifest of a checked module, which say more than kinds.
struct CheckedTypes: Sendable {
    private let values: ValueTypes
    /// The type of the result of each action, by `Target/action` and `Type#action`.
    private let results: [String: DeclaredType]

    /// - Parameter manifest: A manifest that a host has accepted.
    init(_ manifest: Value) {
        let parsed = try? Bytes(manifest.json.utf8).withUnsafeBytes { text throws(PluginError) in
            try ModuleManifest(parsing: text, abiMinor: .max)
        }
        values = parsed?.values ?? ValueTypes()
        var results: [String: DeclaredType] = [:]
        for target in parsed?.targets ?? [] {
            for action in target.actions { results["\(target.name)/\(action.name)"] = action.resultType }
        }
        for type in parsed?.types ?? [] {
            for action in type.actions { results["\(type.name)#\(action.name)"] = action.resultType }
        }
        self.results = results
    }

    /// Returns the kind of a type that the manifest names.
    func kind(_ text: String) -> Value.Kind { values.type(text)?.kind ?? .any }

    /// Returns why the result of an action is not of the type that is declared: the end of a sentence; `nil` if it is,
    /// or if only a kind is declared.
    func mismatch(of value: Value, _ action: String) -> String? {
        guard let type = results[action], !type.isPlain, let problem = values.mismatch(of: value, type, at: "result")
        else {
            return nil
        }
        return "is declared to return \(type), but \(problem)."
    }

    /// How many values an argument consists of, apart from the fields of records that are not optional. Lists, maps
    /// and optionals that come after them are empty.
    static let argumentSize = 1000

    /// Returns a value as callers usually pass it to a parameter of this type.
    func ordinary(_ text: String, _ seeded: inout SeededValues, object: Object) -> Value {
        var left = Self.argumentSize
        return ordinary(values.type(text) ?? .kind(.any), &seeded, object, depth: 0, &left)
    }

    private func ordinary(
        _ type: DeclaredType, _ seeded: inout SeededValues, _ object: Object, depth: Int, _ left: inout Int
    ) -> Value {
        left -= 1
        let isFull = depth > 4 || left < 0
        switch type {
        case .kind(let kind): return seeded.ordinary(kind, object: object)
        case .object: return .object(object)
        case .optional(let wrapped):
            let isNull = isFull || seeded.ordinary(.bool, object: object) == true
            return isNull ? .null : ordinary(wrapped, &seeded, object, depth: depth + 1, &left)
        case .list(let element):
            var elements: [Value] = []
            while !isFull, left > 0, elements.count < 2 {
                elements.append(ordinary(element, &seeded, object, depth: depth + 1, &left))
            }
            return .list(elements)
        case .map(let element):
            return isFull ? [:] : ["key": ordinary(element, &seeded, object, depth: depth + 1, &left)]
        case .enumeration(let name, let kind):
            guard case .enumeration(let cases) = values[name]?.form,
                case .int(let number) = seeded.ordinary(.int, object: object)
            else { return seeded.ordinary(kind, object: object) }
            return cases[number % cases.count].value
        case .record(let name):
            guard case .record(let fields) = values[name]?.form else { return [:] }
            var entries: [String: Value] = [:]
            for field in fields {
                entries[field.name] = ordinary(field.type, &seeded, object, depth: depth + 1, &left)
            }
            return .map(entries)
        }
    }
}
