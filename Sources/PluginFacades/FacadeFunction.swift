import PluginABI
import PluginFile

/// An action as a function of a façade.
struct FacadeFunction {
    let action: ModuleManifest.Action
    private let name: String
    private let parameters: [Parameter]

    private struct Parameter {
        let declared: ModuleManifest.Parameter
        /// The argument label.
        let label: String
        /// The name in the body. It differs from the label if the label would hide a name that the body uses.
        let local: String

        /// Whether a call can omit the parameter: it is optional and has no default.
        var canBeMissing: Bool { !declared.isRequired && declared.defaultValue == nil }

        var name: String { SwiftSource.literal(declared.name) }
        var value: String { declared.type.wrapped(local) }
    }

    init(_ action: ModuleManifest.Action, named name: String) {
        self.action = action
        self.name = SwiftNames.escaped(name)
        var labels = SwiftNames()
        var locals = SwiftNames(reserved: SwiftNames.members)
        let words = labels.take(action.parameters.map(\.name))
        parameters = zip(zip(action.parameters, words), locals.take(words)).map { pair, local in
            Parameter(declared: pair.0, label: SwiftNames.escaped(pair.1), local: SwiftNames.escaped(local))
        }
    }

    private var returnsSomething: Bool { action.result != .null }
    private var canMiss: Bool { parameters.contains(where: \.canBeMissing) }

    /// Writes the function or, without a body, a protocol requirement, which has no default arguments.
    ///
    /// - Parameter access: The access modifier of the function.
    func declare(in source: inout SwiftSource, _ access: String? = nil, _ body: ((inout SwiftSource) -> Void)? = nil) {
        source.declare(
            (access ?? "") + head(withDefaults: body != nil), action.summary,
            parameters: parameters.map { ($0.local, $0.declared.summary) }, notes: ["Performs `\(action.name)`."],
            isDiscardable: returnsSomething, body)
    }

    private func head(withDefaults: Bool) -> String {
        let list = parameters.map { parameter in
            let name =
                parameter.label == parameter.local ? parameter.label : "\(parameter.label) \(parameter.local)"
            let type = parameter.declared.type.swiftType + (parameter.canBeMissing ? "?" : "")
            guard withDefaults, !parameter.declared.isRequired else { return "\(name): \(type)" }
            return "\(name): \(type) = \(parameter.declared.defaultValue.map(SwiftSource.literal) ?? "nil")"
        }
        let effects = (action.isAsync ? "async " : "") + "throws(PluginError)"
        let result = returnsSomething ? " -> \(action.result.swiftType)" : ""
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
        if canMiss {
            let given = sure.map { "(\($0.name), \($0.value))" }
            source.line("var given: [(String, Value)] = [\(given.joined(separator: ", "))]")
            for parameter in parameters where parameter.canBeMissing {
                source.line("if let \(parameter.local) { given.append((\(parameter.name), \(parameter.value))) }")
            }
            arguments = "Parameters(given)"
        }
        let conversion = [.null, .any].contains(action.result) ? "" : ".result(of: \(SwiftSource.literal(title)))"
        let verb = returnsSomething && canMiss ? "return try" : "try"
        source.line("\(verb) \(call), \(arguments), timeout: timeout)\(conversion)")
    }
}
