internal import PluginABI
internal import PluginHost

/// `pluginhost match PATTERN URL`
struct Match: Command {
    static let specification = CommandSpecification(
        name: "match",
        overview: "Show whether a URL matches the pattern of a route, and what its groups take.",
        discussion: "Where pattern and URL are both without a scheme they are plain paths. The exit code is 0 whether "
            + "the URL matches or not.",
        arguments: [
            ArgumentSpecification(name: "pattern", help: "The pattern, for instance 'app://shop/detail/:key'."),
            ArgumentSpecification(name: "url", help: "The URL, for instance 'app://shop/detail/42'."),
        ],
        options: [.urlLength, .json])

    private let arguments: ParsedArguments

    init(_ arguments: ParsedArguments) { self.arguments = arguments }

    func run(_ environment: CommandEnvironment) async throws(PluginError) {
        let pattern = try URLPattern(arguments.positionals[0])
        let length = try arguments.urlLength ?? URLPattern.defaultLength
        let taken = try pattern.match(arguments.positionals[1], maximumLength: length)
        if arguments.has(.json) {
            let result: [String: Value] = taken.map { ["matched": true, "parameters": .map($0)] } ?? ["matched": false]
            environment.console.print(Value.map(result).json)
        } else if let taken {
            environment.console.print(taken.isEmpty ? "It matches." : Value.map(taken).outline)
        } else {
            environment.console.print("It does not match.")
        }
    }
}
