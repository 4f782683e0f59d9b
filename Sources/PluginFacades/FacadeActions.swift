import PluginABI
import PluginFile

/// The part of a façade that calls actions: a type for each target, object type and service.
struct FacadeActions {
    /// `public `, or an empty text.
    let access: String
    /// The name of the target, object type or service in the manifest.
    let owner: String
    let types: FacadeTypes

    func write(_ target: ModuleManifest.Target, as type: String, to source: inout SwiftSource) {
        source.declare(
            "\(access)struct \(type): Sendable", target.summary, notes: ["The actions of the target `\(target.name)`."]
        ) { source in
            writeProperties("caller", "any Caller", "The caller that makes the calls.", to: &source)
            write(target.actions, through: "caller", "\(SwiftSource.literal(target.name)), ", to: &source)
        }
    }

    func write(_ objects: ModuleManifest.ObjectType, as type: String, to source: inout SwiftSource) {
        source.declare(
            "\(access)struct \(type): TypedValue, Hashable", objects.summary,
            notes: ["The actions of an object of the type `\(objects.name)`."]
        ) { source in
            writeProperties("object", "Object", "The object that the calls go to.", to: &source)
            source.line()
            source.line("\(access)init(from reader: ValueReader) throws(PluginError) { self.init(try reader.get()) }")
            source.line("\(access)func written() throws(PluginError) -> Value { .object(object) }")
            write(objects.actions, through: "object", to: &source)
            writeBackData(of: objects, to: &source)
        }
    }

    func write(
        _ service: ModuleManifest.Service, of target: ModuleManifest.Target, _ type: String, _ client: String,
        to source: inout SwiftSource
    ) {
        let title = "the service `\(service.name)` from version \(service.version) on"
        source.declare(
            "\(access)protocol \(type): Sendable", service.summary,
            notes: ["The actions of \(title), to call or to implement."]
        ) { source in
            for function in functions(target.actions) { function.declare(in: &source) }
        }
        source.declare(
            "\(access)struct \(client): \(type), ServiceClient", "Calls \(title), whichever module offers it.",
            notes: ["    let client = try caller.service(\(client).self)"]
        ) { source in
            let version = SwiftSource.literal(service.version.description)
            source.line("\(access)static let serviceName = \(SwiftSource.literal(service.name))")
            source.line("\(access)static let minimumVersion: String? = \(version)")
            writeProperties("service", "ServiceHandle", "The service that is called.", hasTimeout: false, to: &source)
            write(target.actions, through: "service", to: &source)
        }
    }

    /// Writes the function that reads the back data of a page, if the page declares the type of that data.
    private func writeBackData(of page: ModuleManifest.ObjectType, to source: inout SwiftSource) {
        guard let type = page.actions.first(where: { $0.name == "backData" })?.resultType,
            type != .kind(.any), type != .kind(.null)
        else { return }
        source.declare(
            "\(access)static func backData(_ value: Value) throws(PluginError) -> \(types.swiftType(type))",
            "Reads the back data that the opener of such a page gets when the page is closed.",
            notes: ["- Throws: `invalidResult` if the value is not what the page declares."]
        ) { source in
            source.line("try value.typed(of: \(SwiftSource.literal("\(page.name)/backData")))")
        }
    }

    private func writeProperties(
        _ name: String, _ type: String, _ text: String, hasTimeout: Bool = true, to source: inout SwiftSource
    ) {
        source.document(text)
        source.line("\(access)let \(name): \(type)")
        source.document("How long each call may take. Default: the host's timeout for asynchronous actions.")
        source.line("\(access)var timeout: Duration?")
        source.line()
        let timeout = hasTimeout ? ", timeout: Duration? = nil" : ""
        source.block("\(access)init(_ \(name): \(type)\(timeout))") { source in
            source.line("self.\(name) = \(name)")
            if hasTimeout { source.line("self.timeout = timeout") }
        }
    }

    private func functions(_ actions: [ModuleManifest.Action]) -> [FacadeFunction] {
        // The fallback of a target is only for actions that are not declared.
        let actions = actions.filter { $0.name != "notFound" }
        var names = SwiftNames(reserved: SwiftNames.members.union(types.used))
        return zip(actions, names.take(actions.map(\.name))).map { FacadeFunction($0, named: $1, types) }
    }

    /// Writes functions for actions.
    ///
    /// - Parameters:
    ///   - receiver: The property whose `call` or `perform` makes the calls.
    ///   - arguments: The arguments before the name of the action.
    private func write(
        _ actions: [ModuleManifest.Action], through receiver: String, _ arguments: String = "",
        to source: inout SwiftSource
    ) {
        for function in functions(actions) {
            let action = function.action
            let verb = action.isAsync ? "await \(receiver).call" : "\(receiver).perform"
            function.declare(in: &source, access) { source in
                function.writeCall(
                    "\(verb)(\(arguments)\(SwiftSource.literal(action.name))", of: "\(owner)/\(action.name)",
                    to: &source)
            }
        }
    }
}
