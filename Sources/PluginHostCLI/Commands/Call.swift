internal import PluginABI
internal import PluginHost

/// `pluginhost call TARGET ACTION [name=value …]`
struct Call: Question {
    static let specification = CommandSpecification(
        name: "call",
        overview: "Perform an action of a target, as a local caller, and print the result.",
        discussion: "A value is read as JSON where it is JSON, else as text: 'page=2' is a number, 'key=x' a string, "
            + "'key=\"2\"' (with the quotes) a string again.",
        arguments: [
            ArgumentSpecification(name: "target", help: "The name of the target."),
            ArgumentSpecification(name: "action", help: "The name of the action."),
            ArgumentSpecification(
                name: "name=value", isRequired: false, repeats: true, help: "The parameters of the action."),
        ],
        options: OptionSpecification.hosting + [.timeout, .attach, .json])

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
    }

    func ask(_ service: any HostService, _ console: Console) async throws(PluginError) {
        do throws(PluginError) {
            let result = try await service.call(target, action, parameters, timeout: timeout)
            console.printResult(result, asJSON: arguments.has(.json))
        } catch {
            throw hinting(error)
        }
    }

    /// The error of a word that was meant as text and read as JSON, with what to write instead.
    private func hinting(_ error: PluginError) -> PluginError {
        guard error.code == .mistypedParameter, error.source == nil, error.message.contains("is declared string"),
            let (name, value) = parameters.first(where: { error.message.contains("“\($0.key)”") })
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
                throw PluginError(.usage, "'\(word)' is no parameter; write it as 'name=value'.")
            }
            guard parameters[parts[0]] == nil else {
                throw PluginError(.usage, "The parameter '\(parts[0])' is given twice.")
            }
            parameters[parts[0]] = (try? Value(json: parts[1])) ?? .string(parts[1])
        }
        return parameters
    }
}

extension Console {
    func printResult(_ result: Value, asJSON: Bool) {
        print(asJSON ? Value.map(["result": result]).json : result.readable)
    }
}
