package import PluginABI

extension ValueTypes {
    /// Returns why a value is not of a type, as the end of a sentence that begins with a path in the value, such as
    /// `drafts[1].url is missing`; `nil` if it is of that type. Fields that a record does not declare are accepted.
    ///
    /// - Parameter path: The name of the value in the sentence.
    package func mismatch(of value: Value, _ type: DeclaredType, at path: String) -> String? {
        var check = TypeCheck(types: self)
        guard let found = check.mismatch(of: value, type) else { return nil }
        return path + found.path.reversed().joined() + " " + found.problem
    }
}

/// A comparison of a value with its type. The time that it takes depends on the size of the value, not on that of the
/// type.
struct TypeCheck {
    let types: ValueTypes
    /// The number of values, and of fields of records, that were looked at.
    private(set) var steps = 0

    init(types: ValueTypes) { self.types = types }

    struct Mismatch {
        /// The path to the value, the innermost step first: `.url`, `[1]`.
        var path: [String] = []
        /// The end of a sentence that begins with the path.
        let problem: String

        func inside(_ step: String) -> Mismatch { Mismatch(path: path + [step], problem: problem) }
    }

    mutating func mismatch(of value: Value, _ type: DeclaredType) -> Mismatch? {
        steps += 1
        switch (type, value) {
        case (.optional, .null): return nil
        case (.optional(let wrapped), _): return mismatch(of: value, wrapped)
        case (.kind(.any), _), (.kind(.double), .int): return nil
        case (.kind(let kind), _) where kind == value.kind: return nil
        case (.object, .object): return nil
        case (.list(let element), .list(let values)):
            for (index, value) in values.enumerated() {
                if let found = mismatch(of: value, element) { return found.inside("[\(index)]") }
            }
            return nil
        case (.map(let element), .map(let entries)):
            for (key, value) in entries.sorted(by: { $0.key < $1.key }) {
                if let found = mismatch(of: value, element) { return found.inside("[“\(key.shortened)”]") }
            }
            return nil
        case (.record(let name), .map(let entries)): return mismatch(of: entries, name)
        case (.enumeration(let name, _), .string), (.enumeration(let name, _), .int):
            guard let known = types.cases[name], !known.contains(value),
                case .enumeration(let cases) = types[name]?.form
            else { return nil }
            let shown = cases.prefix(8).map { Self.shown($0.value) } + (cases.count > 8 ? ["…"] : [])
            return Mismatch(problem: "is \(Self.shown(value)), and not one of \(shown.joined(separator: ", "))")
        default: return Mismatch(problem: "is of type \(value.kind.rawValue), not \(type)")
        }
    }

    private mutating func mismatch(of entries: [String: Value], _ name: String) -> Mismatch? {
        guard let record = types.records[name] else { return nil }
        for field in record.required {
            steps += 1
            if entries[field.name] == nil {
                return Mismatch(path: [".\(field.name.shortened)"], problem: "is missing")
            }
        }
        // The entries that are fields, in the order of the fields.
        for position in entries.keys.compactMap({ record.positions[$0] }).sorted() {
            let field = record.fields[position]
            guard let value = entries[field.name], let found = mismatch(of: value, field.type) else { continue }
            return found.inside(".\(field.name.shortened)")
        }
        return nil
    }

    private static func shown(_ value: Value) -> String {
        if case .string(let text) = value { return "“\(text.shortened)”" }
        return value.json
    }
}
