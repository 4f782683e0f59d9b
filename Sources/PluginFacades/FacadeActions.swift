import PluginABI
import PluginFile

/// The part of a façade that calls actions: a type for each target, type of objects, and service.
struct FacadeActions {
    /// `public `, or nothing.
    let access: String
    /// What the actions belong to, as the manifest calls it.
    let owner: String

    /// What such a type has besides its actions.
    private static let members = SwiftNames.used.union(["caller", "timeout", "object", "service", "given"])

    // MARK: Types

    func write(_ target: ModuleManifest.Target, as type: String, to source: inout SwiftSource) {
        source.gap()
        source.document(target.summary, notes: ["The actions of the target `\(target.name)`."])
        source.block("\(access)struct \(type): Sendable") { source in
            writeProperties(
                [("caller", "any Caller", "What the calls go through.")], unlabelled: "caller", to: &source)
            write(target.actions, to: &source) { action, arguments in
                let name = SwiftSource.literal(target.name)
                let verb = action.isAsync ? "await caller.call" : "caller.perform"
                return "\(verb)(\(name), \(SwiftSource.literal(action.name)), \(arguments), timeout: timeout)"
            }
        }
    }

    func write(_ objects: ModuleManifest.ObjectType, as type: String, to source: inout SwiftSource) {
        source.gap()
        source.document(objects.summary, notes: ["The actions of an object of the type `\(objects.name)`."])
        source.block("\(access)struct \(type): Sendable") { source in
            writeProperties([("object", "Object", "What the calls go to.")], unlabelled: "object", to: &source)
            write(objects.actions, to: &source) { action, arguments in
                let verb = action.isAsync ? "await object.call" : "object.perform"
                return "\(verb)(\(SwiftSource.literal(action.name)), \(arguments), timeout: timeout)"
            }
        }
    }

    func write(
        _ service: ModuleManifest.Service, of target: ModuleManifest.Target, _ type: String, _ client: String,
        to source: inout SwiftSource
    ) {
        let title = "the service `\(service.name)` from version \(service.version) on"
        source.gap()
        source.document(service.summary, notes: ["What \(title) does, to be asked for or stood in for."])
        source.block("\(access)protocol \(type): Sendable") { source in
            for function in functions(target.actions) {
                source.gap()
                function.document(to: &source)
                if function.returnsSomething { source.line("@discardableResult") }
                source.line(function.head(withDefaults: false))
            }
        }
        source.gap()
        source.document(
            "Calls \(title), whichever module offers it.",
            notes: ["    let client = try caller.service(\(client).self)"])
        source.block("\(access)struct \(client): \(type), ServiceClient") { source in
            source.line("\(access)static let serviceName = \(SwiftSource.literal(service.name))")
            source.line(
                "\(access)static let minimumVersion: String? = \(SwiftSource.literal(service.version.description))")
            writeProperties(
                [("service", "ServiceHandle", "What the calls go through.")], unlabelled: "service", hasTimeout: false,
                to: &source)
            write(target.actions, to: &source) { action, arguments in
                let verb = action.isAsync ? "await service.call" : "service.perform"
                return "\(verb)(\(SwiftSource.literal(action.name)), \(arguments), timeout: timeout)"
            }
        }
    }

    private func writeProperties(
        _ properties: [(name: String, type: String, text: String)], unlabelled: String, hasTimeout: Bool = true,
        to source: inout SwiftSource
    ) {
        for property in properties {
            source.document(property.text)
            source.line("\(access)let \(property.name): \(property.type)")
        }
        source.document("How long each call may take. Default: what the host says.")
        source.line("\(access)var timeout: Duration?")
        source.line()
        let list = properties.map { ($0.name == unlabelled ? "_ " : "") + "\($0.name): \($0.type)" }
        let more = hasTimeout ? ["timeout: Duration? = nil"] : []
        source.block("\(access)init(\((list + more).joined(separator: ", ")))") { source in
            for property in properties { source.line("self.\(property.name) = \(property.name)") }
            if hasTimeout { source.line("self.timeout = timeout") }
        }
    }

    // MARK: Actions

    private func functions(_ actions: [ModuleManifest.Action]) -> [FacadeFunction] {
        // The fallback of a target is there for what nobody has declared.
        let actions = actions.filter { $0.name != "notFound" }
        var names = SwiftNames(reserved: Self.members)
        return zip(actions, names.take(actions.map(\.name))).map { FacadeFunction($0, named: $1) }
    }

    /// - Parameter call: The expression that makes a call, of the action and the expression of its parameters.
    private func write(
        _ actions: [ModuleManifest.Action], to source: inout SwiftSource,
        call: (ModuleManifest.Action, String) -> String
    ) {
        for function in functions(actions) {
            source.gap()
            function.document(to: &source)
            if function.returnsSomething { source.line("@discardableResult") }
            source.block(access + function.head(withDefaults: true)) { source in
                function.writeParameters(to: &source)
                let expression = call(function.action, function.arguments)
                source.line(function.returning(expression, of: SwiftSource.literal("\(owner)/\(function.action.name)")))
            }
        }
    }
}
