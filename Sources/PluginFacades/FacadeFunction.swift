import PluginABI
import PluginFile

/// An action as a function of a façade.
struct FacadeFunction {
    let action: ModuleManifest.Action
    private let name: String
    private let parameters: [Parameter]

    private struct Parameter {
        let declared: ModuleManifest.Parameter
        /// What callers write.
        let label: String
        /// What stands in the body, where labels can hide something.
        let local: String

        /// Whether it is left out where nobody gives it: it is optional, and has no default.
        var canBeMissing: Bool { !declared.isRequired && declared.defaultValue == nil }

        var name: String { SwiftSource.literal(declared.name) }
        var value: String { declared.type.wrapped(local) }
    }

    init(_ action: ModuleManifest.Action, named name: String) {
        self.action = action
        self.name = SwiftNames.escaped(name)
        var labels = SwiftNames()
        var locals = SwiftNames(reserved: SwiftNames.used.union(["caller", "timeout", "object", "service", "given"]))
        let words = labels.take(action.parameters.map(\.name))
        parameters = zip(zip(action.parameters, words), locals.take(words)).map { pair, local in
            Parameter(
                declared: pair.0, label: SwiftNames.escaped(pair.1), local: SwiftNames.escaped(local))
        }
    }

    var returnsSomething: Bool { action.result != .null }

    func document(to source: inout SwiftSource) {
        source.document(
            action.summary, parameters: parameters.map { ($0.local, $0.declared.summary) },
            notes: ["Performs `\(action.name)`."])
    }

    func head(withDefaults: Bool) -> String {
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

    /// The parameters of the call, as an expression.
    var arguments: String {
        if parameters.isEmpty { return "[:]" }
        if parameters.contains(where: \.canBeMissing) { return "Parameters(given)" }
        return "[\(parameters.map { "\($0.name): \($0.value)" }.joined(separator: ", "))]"
    }

    /// What the expression needs before.
    func writeParameters(to source: inout SwiftSource) {
        guard parameters.contains(where: \.canBeMissing) else { return }
        let sure = parameters.filter { !$0.canBeMissing }.map { "(\($0.name), \($0.value))" }
        source.line("var given: [(String, Value)] = [\(sure.joined(separator: ", "))]")
        for parameter in parameters where parameter.canBeMissing {
            source.line("if let \(parameter.local) { given.append((\(parameter.name), \(parameter.value))) }")
        }
    }

    /// The statement that makes the call and gives what the function returns.
    func returning(_ call: String, of title: String) -> String {
        let verb = returnsSomething && parameters.contains(where: \.canBeMissing) ? "return try" : "try"
        let conversion = [.null, .any].contains(action.result) ? "" : ".result(of: \(title))"
        return "\(verb) \(call)\(conversion)"
    }
}
