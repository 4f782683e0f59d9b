internal import PluginABI

/// `pluginhost call TARGET ACTION [name=value …]`
enum Call: Question {
    static let version = OptionSpecification(
        name: "--from", value: "version", help: "The lowest acceptable version of the service. (default: any)")

    static let specification = CommandSpecification(
        name: "call",
        overview: "Perform an action of a target, as a local caller, and print the result.",
        discussion: NamedValues.help,
        arguments: [
            ArgumentSpecification(
                name: "target", kind: .receiver,
                help: "The name of the target or the service, or the number of the object."),
            ArgumentSpecification(name: "action", kind: .action, help: "The name of the action."),
            ArgumentSpecification(
                name: "name=value", isRequired: false, repeats: true, kind: .parameter,
                help: "The parameters of the action."),
        ],
        options: OptionSpecification.hosting + [.ofService, version, .ofObject, .timeout, .attach, .json])

    static func parameters(_ arguments: ParsedArguments) throws(PluginError) -> [String: Value] {
        let receiver = arguments.positionals[0]
        var parameters: [String: Value] = try [
            "action": .string(arguments.positionals[1]),
            "parameters": .map(NamedValues(arguments.positionals.dropFirst(2)).untyped),
        ].withTimeout(of: arguments)
        let version = arguments.value(of: version)
        guard arguments.has(.ofService) || version == nil else {
            throw .usage("'--from' is for services: pass '--service', too.")
        }
        switch (arguments.has(.ofObject), arguments.has(.ofService)) {
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
        let words = try NamedValues(invocation.arguments.positionals.dropFirst(2))
        try Open.tell(await host.request("call", host.typing(invocation.parameters, words)), invocation)
    }
}
