internal import PluginABI
internal import PluginHost

/// `pluginhost call TARGET ACTION [name=value …]`
struct Call: Question {
    static let service = OptionSpecification(
        name: "--service", help: "The first argument is the name of a service: whatever implements it is called.")
    static let version = OptionSpecification(
        name: "--from", value: "version", help: "The smallest version of the service that will do. (default: any)")

    static let object = OptionSpecification(
        name: "--object",
        help: "The first argument is an object that a call has returned: the number behind \"object\". A running host "
            + "holds what it has shown; see 'release'.")

    static let specification = CommandSpecification(
        name: "call",
        overview: "Perform an action of a target, as a local caller, and print the result.",
        discussion: "A value is read as JSON where it is JSON, else as text: 'page=2' is a number, 'key=x' a string, "
            + "'key=\"2\"' (with the quotes) a string again.",
        arguments: [
            ArgumentSpecification(
                name: "target", help: "The name of the target or the service, or the number of the object."),
            ArgumentSpecification(name: "action", help: "The name of the action."),
            ArgumentSpecification(
                name: "name=value", isRequired: false, repeats: true, help: "The parameters of the action."),
        ],
        options: OptionSpecification.hosting + [service, version, object, .timeout, .attach, .json])

    let arguments: ParsedArguments
    let target: String
    let action: String
    let parameters: [String: Value]
    private let timeout: Duration?

    init(_ arguments: ParsedArguments) throws(PluginError) {
        self.arguments = arguments
        target = arguments.positionals[0]
        action = arguments.positionals[1]
        parameters = try Self.parameters(arguments.positionals.dropFirst(2))
        timeout = try arguments.timeout
        guard arguments.has(Self.service) || arguments.value(of: Self.version) == nil else {
            throw PluginError(.usage, "'--from' is for services: give '--service', too.")
        }
        guard arguments.has(Self.object) else { return }
        guard !arguments.has(Self.service) else {
            throw PluginError(
                .usage, "'--object' and '--service' do not go together: the first argument is one of them.")
        }
        _ = try Self.object(target)
    }

    /// The handle of an object, as people write it.
    static func object(_ text: String) throws(PluginError) -> Int {
        guard let handle = Int(text) else {
            throw PluginError(
                .usage,
                "'\(text.shortened)' is no object; write the number that a result shows behind \"object\".")
        }
        return handle
    }

    func ask(_ service: any HostService, _ console: Console) async throws(PluginError) {
        do throws(PluginError) {
            let result =
                if arguments.has(Self.object) {
                    try await service.callObject(Self.object(target), action, parameters, timeout: timeout)
                } else if arguments.has(Self.service) {
                    try await service.callService(
                        target, from: arguments.value(of: Self.version), action, parameters, timeout: timeout)
                } else {
                    try await service.call(target, action, parameters, timeout: timeout)
                }
            console.printResult(result, asJSON: arguments.has(.json))
        } catch {
            throw hinting(error)
        }
    }

    /// The error of a word that was meant as text and read as JSON, with what to write instead.
    private func hinting(_ error: PluginError) -> PluginError {
        guard error.code == .mistypedParameter, error.source == nil, error.message.contains("is declared string"),
            let (name, value) = parameters.first(where: { error.message.contains("“\($0.key.shortened)”") })
        else { return error }
        var error = error
        error.message += " To pass text that is also JSON, write it in quotes: '\(name)=\"\(value.json)\"'."
        return error
    }

    /// Parameters that are written `name=value`.
    static func parameters(_ words: ArraySlice<String>) throws(PluginError) -> [String: Value] {
        var parameters: [String: Value] = [:]
        for word in words {
            let parts = word.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false).map(String.init)
            guard parts.count == 2, !parts[0].isEmpty else {
                throw PluginError(.usage, "'\(word.shortened)' is no parameter; write it as 'name=value'.")
            }
            guard parameters[parts[0]] == nil else {
                throw PluginError(.usage, "The parameter '\(parts[0].shortened)' is given twice.")
            }
            parameters[parts[0]] = (try? Value(json: parts[1])) ?? .string(parts[1])
        }
        return parameters
    }
}

extension Console {
    func printResult(_ result: Value, asJSON: Bool) {
        if asJSON { print(Value.map(["result": result]).json) } else { printUnchanged(result.readable) }
    }
}
