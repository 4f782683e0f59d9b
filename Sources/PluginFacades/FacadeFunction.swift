import PluginABI
import PluginFile

/// An action as a function of a façade.
struct FacadeFunction {
    let action: ModuleManifest.Action
    private let name: String
    private let types: FacadeTypes
    private let parameters: [Parameter]
    /// The argument label and the local name of the rest; `nil` if the action has none.
    private let rest: (label: String, local: String)?

    private struct Parameter {
        let declared: ModuleManifest.Parameter
        /// The argument label.
        let label: String
        /// The name in the body. It differs from the label if the label would hide a name that the body uses.
        let local: String
        let type: String
        /// The parameter as a value.
        let value: String
        /// The default as a literal; `nil` if there is none, or only the host can pass it.
        let defaultLiteral: String?

        /// Whether a call can omit the parameter: it is optional and has no default in Swift.
        var canBeMissing: Bool { !declared.isRequired && defaultLiteral == nil }

        var name: String { SwiftSource.literal(declared.name) }
    }

    init(_ action: ModuleManifest.Action, named name: String, _ types: FacadeTypes) {
        self.action = action
        self.types = types
        self.name = SwiftNames.escaped(name)
        var labels = SwiftNames()
        var locals = SwiftNames(reserved: SwiftNames.members.union(types.used))
        let words = labels.take(action.parameters.map(\.name) + (action.hasRest ? ["rest"] : []))
        let names = zip(words, locals.take(words)).map { (SwiftNames.escaped($0), SwiftNames.escaped($1)) }
        parameters = zip(action.parameters, names).map { declared, names in
            let type = declared.declaredType
            return Parameter(
                declared: declared, label: names.0, local: names.1, type: types.swiftType(type),
                value: types.wrapped(names.1, type),
                defaultLiteral: declared.defaultValue.flatMap { types.literal($0, type) })
        }
        rest = action.hasRest ? names.last : nil
    }

    private var returnsSomething: Bool { action.result != .null }
    /// Whether each call decides which parameters it passes, so that statements must collect them.
    private var needsStatements: Bool { rest != nil || parameters.contains(where: \.canBeMissing) }

    /// Writes the function or, without a body, a protocol requirement, which has no default arguments.
    ///
    /// - Parameter access: The access modifier of the function.
    func declare(in source: inout SwiftSource, _ access: String? = nil, _ body: ((inout SwiftSource) -> Void)? = nil) {
        let described =
            parameters.map { ($0.local, $0.declared.summary) }
            + (rest.map { [($0.local, "Further parameters, which the action does not declare.")] } ?? [])
        source.declare(
            (access ?? "") + head(withDefaults: body != nil), action.summary,
            parameters: described, notes: ["Performs `\(action.name)`."] + (action.isIdempotent ? ["Idempotent: may be called again."] : []),
            isDiscardable: action.resultType == .kind(.any), body)
    }

    private func head(withDefaults: Bool) -> String {
        func names(_ label: String, _ local: String) -> String { label == local ? label : "\(label) \(local)" }
        var list = parameters.map { parameter in
            let name = names(parameter.label, parameter.local)
            let type = parameter.type + (parameter.canBeMissing ? "?" : "")
            guard withDefaults, !parameter.declared.isRequired else { return "\(name): \(type)" }
            return "\(name): \(type) = \(parameter.defaultLiteral ?? "nil")"
        }
        if let rest {
            list.append("\(names(rest.label, rest.local)): [String: Value]\(withDefaults ? " = [:]" : "")")
        }
        let effects = (action.isAsync ? "async " : "") + "throws(PluginError)"
        let result = returnsSomething ? " -> \(types.swiftType(action.resultType))" : ""
        return "func \(name)(\(list.joined(separator: ", "))) \(effects)\(result)"
    }

    /// Writes the statements that make a call.
    ///
    /// - Parameters:
    ///   - call: The expression up to the parameters.
    ///   - title: The name of the action in errors about its result.
    func writeCall(_ call: String, of title: String, to source: inout SwiftSource) {
        let sure = parameters.filter { !$0.canBeMissing }
        var arguments = SwiftSource.dictionary(sure.map { "\($0.name): \($0.value)" })
        if needsStatements {
            let given = sure.map { "(\($0.name), \($0.value))" }
            let throwing = sure.contains { !$0.declared.declaredType.isPlain } ? "try " : ""
            source.line("var given: [(String, Value)] = \(throwing)[\(given.joined(separator: ", "))]")
            for parameter in parameters where parameter.canBeMissing {
                let throwing = parameter.declared.declaredType.isPlain ? "" : "try "
                source.line(
                    "if let \(parameter.local) { \(throwing)given.append((\(parameter.name), \(parameter.value))) }")
            }
            if let rest { source.line("given += \(rest.local).map { ($0.key, $0.value) }") }
            arguments = "Parameters(given)"
        }
        let conversion =
            switch action.resultType {
            case .kind(.null), .kind(.any): ""
            case .kind: ".result(of: \(SwiftSource.literal(title)))"
            default: ".typed(of: \(SwiftSource.literal(title)))"
            }
        let verb = returnsSomething && needsStatements ? "return try" : "try"
        source.line("\(verb) \(call), \(arguments), timeout: timeout)\(conversion)")
    }
}
