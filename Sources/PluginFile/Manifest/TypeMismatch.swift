package import PluginABI

extension ValueTypes {
    /// Returns why a value is not of a type, as the end of a sentence that begins with a path in the value, such as
    /// `drafts[1].url is missing`; `nil` if it is. Fields that a record does not declare are accepted.
    ///
    /// - Parameter path: The name of the value in the sentence.
    package func mismatch(of value: Value, _ type: DeclaredType, at path: String) -> String? {
        switch (type, value) {
        case (.optional, .null): return nil
        case (.optional(let wrapped), _): return mismatch(of: value, wrapped, at: path)
        case (.kind(.any), _), (.kind(.double), .int): return nil
        case (.kind(let kind), _) where kind == value.kind: return nil
        case (.object, .object): return nil
        case (.list(let element), .list(let values)):
            for (index, value) in values.enumerated() {
                if let found = mismatch(of: value, element, at: "\(path)[\(index)]") { return found }
            }
            return nil
        case (.map(let element), .map(let entries)):
            for (key, value) in entries.sorted(by: { $0.key < $1.key }) {
                if let found = mismatch(of: value, element, at: "\(path)[“\(key.shortened)”]") { return found }
            }
            return nil
        case (.record(let name), .map(let entries)):
            guard case .record(let fields) = self[name]?.form else { return nil }
            for field in fields {
                let here = "\(path).\(field.name.shortened)"
                if let value = entries[field.name] {
                    if let found = mismatch(of: value, field.type, at: here) { return found }
                } else if !field.type.canBeMissing {
                    return "\(here) is missing"
                }
            }
            return nil
        case (.enumeration(let name, _), .string), (.enumeration(let name, _), .int):
            guard case .enumeration(let cases) = self[name]?.form, !cases.contains(where: { $0.value == value }) else {
                return nil
            }
            let known = cases.prefix(8).map { Self.shown($0.value) } + (cases.count > 8 ? ["…"] : [])
            return "\(path) is \(Self.shown(value)), and not one of \(known.joined(separator: ", "))"
        default: return "\(path) is of type \(value.kind.rawValue), not \(type)"
        }
    }

    private static func shown(_ value: Value) -> String {
        if case .string(let text) = value { return "“\(text.shortened)”" }
        return value.json
    }
}

extension DeclaredType {
    /// Whether a field of this type can be missing.
    fileprivate var canBeMissing: Bool {
        switch self {
        case .optional, .kind(.any): true
        default: false
        }
    }
}
