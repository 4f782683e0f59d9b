internal import PluginABI

/// `pluginhost call TARGET ACTION [name=value …]`
enum Call: Question {
    static let service = OptionSpecification(
        name: "--service", help: "The first argument is the name of a service, and its implementation is called.")
    static let version = OptionSpecification(
        name: "--from", value: "version", help: "The lowest acceptable version of the service. (default: any)")

    static let object = OptionSpecification(
        name: "--object",
        help: "The first argument is an object that a call has returned: the number after \"object\". A running host "
            + "keeps the objects that it has shown; see 'release'.")

    static let specification = CommandSpecification(
        name: "call",
        overview: "Perform an action of a target, as a local caller, and print the result.",
        discussion: "A value is read as JSON if it is valid JSON, otherwise as text: 'page=2' is a number, 'key=x' a "
            + "string, and 'key=\"2\"' (with the quotes) a string, too.",
        arguments: [
            ArgumentSpecification(
                name: "target", help: "The name of the target or the service, or the number of the object."),
            ArgumentSpecification(name: "action", help: "The name of the action."),
            ArgumentSpecification(
                name: "name=value", isRequired: false, repeats: true, help: "The parameters of the action."),
        ],
        options: OptionSpecification.hosting + [service, version, object, .timeout, .attach, .json])

    static func parameters(_ arguments: ParsedArguments) throws(PluginError) -> [String: Value] {
        let receiver = arguments.positionals[0]
        var parameters: [String: Value] = try [
            "action": .string(arguments.positionals[1]),
            "parameters": .map(namedValues(arguments.positionals.dropFirst(2))),
        ].withTimeout(of: arguments)
        let version = arguments.value(of: version)
        guard arguments.has(service) || version == nil else {
            throw .usage("'--from' is for services: pass '--service', too.")
        }
        switch (arguments.has(object), arguments.has(service)) {
        case (true, true):
            throw .usage("'--object' and '--service' exclude each other: the first argument is one or the other.")
        case (true, false): parameters["object"] = .int(try handle(receiver))
        case (false, true):
            parameters["service"] = .string(receiver)
            parameters["version"] = version.map(Value.string)
        case (false, false): parameters["target"] = .string(receiver)
        }
        return parameters
    }

    /// Reads the handle of an object.
    static func handle(_ text: String) throws(PluginError) -> Int {
        guard let handle = Int(text) else {
            throw .usage("'\(text.shortened)' is not an object; use the number that a result shows after \"object\".")
        }
        return handle
    }

    static func ask(_ host: any HostService, _ invocation: Invocation) async throws(PluginError) {
        do throws(PluginError) {
            try Open.tell(await host.request("call", invocation.parameters), invocation)
        } catch {
            throw hinting(error, invocation.parameters["parameters"]?.map ?? [:])
        }
    }

    /// Adds advice to an error if a word that was read as JSON may have been meant as text.
    private static func hinting(_ error: PluginError, _ parameters: [String: Value]) -> PluginError {
        guard error.code == .mistypedParameter, error.source == nil, error.message.contains("is declared string"),
            let (name, value) = parameters.first(where: { error.message.contains("“\($0.key.shortened)”") })
        else { return error }
        var error = error
        error.message += " To pass text that is also JSON, write it in quotes: '\(name)=\"\(value.json)\"'."
        return error
    }
}
