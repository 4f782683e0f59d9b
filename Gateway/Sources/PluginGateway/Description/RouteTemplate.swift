/// A route's pattern as path templates of OpenAPI: `/shop/{id}`. A template has only literals, and parameters that
/// match within a segment.
struct RouteTemplate {
    /// The templates: several if the pattern has optional groups. Empty if the pattern cannot be a template.
    private(set) var paths: [Path] = []
    /// The host of the pattern; `nil` for any.
    let host: String?

    struct Path: Hashable {
        var text = ""
        var names: [String] = []
    }

    /// - Parameter pattern: A pattern for HTTP, such as `https://*/shop/:id`.
    init(_ pattern: String) {
        let rest = pattern.components(after: "//")
        let slash = rest.firstIndex(of: "/") ?? rest.endIndex
        let host = String(rest[..<slash])
        self.host = host.allSatisfy { $0.isLetter || $0.isNumber || ".-".contains($0) } && !host.isEmpty ? host : nil
        let isAnyHost = host == "*" || self.host != nil
        guard isAnyHost, let paths = Self.paths(rest[slash...]) else { return }
        self.paths = paths.map { $0.text.isEmpty ? Path(text: "/", names: []) : $0 }
    }

    private static let optionalLimit = 3

    /// Returns the templates of a path; `nil` if it has groups that a template cannot have.
    private static func paths(_ path: Substring) -> [Path]? {
        var found = [Path()]
        var rest = path
        var optionals = 0
        func append(_ text: String, name: String? = nil) {
            for index in found.indices {
                found[index].text += text
                if let name { found[index].names.append(name) }
            }
        }
        while let character = rest.popFirst() {
            switch character {
            case "\\":
                guard let literal = rest.popFirst(), !"{}".contains(literal) else { return nil }
                append(String(literal))
            case ":":
                let name = rest.prefix { $0.isLetter || $0.isNumber || $0 == "_" }
                rest = rest.dropFirst(name.count)
                guard !name.isEmpty, skipExpression(&rest) else { return nil }
                let isOptional = rest.first == "?"
                if isOptional {
                    rest.removeFirst()
                    optionals += 1
                    // Its slash is optional, too.
                    guard optionals <= optionalLimit, found.allSatisfy({ $0.text.hasSuffix("/") }) else { return nil }
                }
                guard rest.first != "+", rest.first != "*" else { return nil }
                let without = found.map { Path(text: String($0.text.dropLast()), names: $0.names) }
                append("{\(name)}", name: String(name))
                if isOptional { found = without + found }
            case "*", "(", "{", "}", "?", "+": return nil
            default: append(String(character))
            }
        }
        return found
    }

    /// Skips `(…)`, if there is one. Returns false if it has no end.
    private static func skipExpression(_ rest: inout Substring) -> Bool {
        guard rest.first == "(" else { return true }
        var depth = 0
        while let character = rest.popFirst() {
            switch character {
            case "\\": _ = rest.popFirst()
            case "(": depth += 1
            case ")":
                depth -= 1
                if depth == 0 { return true }
            default: break
            }
        }
        return false
    }
}

extension String {
    /// The text after the first occurrence of another one.
    fileprivate func components(after mark: String) -> Substring {
        var rest = self[...]
        while !rest.isEmpty, !rest.hasPrefix(mark) { rest.removeFirst() }
        return rest.dropFirst(mark.count)
    }
}
