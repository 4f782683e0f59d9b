internal import PluginABI
internal import PluginHost

/// `pluginhost match PATTERN URL`
enum Match: Command {
    static let specification = CommandSpecification(
        name: "match",
        overview: "Show whether a URL matches the pattern of a route, and the values of the pattern's groups.",
        discussion: "If neither the pattern nor the URL has a scheme, they are plain paths. The exit code is 0 whether "
            + "the URL matches or not.",
        arguments: [
            ArgumentSpecification(name: "pattern", help: "The pattern, for instance 'app://shop/detail/:key'."),
            ArgumentSpecification(name: "url", help: "The URL, for instance 'app://shop/detail/42'."),
        ],
        options: [.urlLength, .json])

    static func run(_ invocation: Invocation) async throws(PluginError) {
        let (arguments, console) = (invocation.arguments, invocation.console)
        let pattern = try URLPattern(arguments.positionals[0])
        let length = try arguments.urlLength ?? URLPattern.defaultLength
        let taken = try pattern.match(arguments.positionals[1], maximumLength: length)
        if invocation.isJSON {
            let result: [String: Value] = taken.map { ["matched": true, "parameters": .map($0)] } ?? ["matched": false]
            console.print(Value.map(result).json)
        } else if let taken {
            console.print(taken.isEmpty ? "It matches." : Value.map(taken).outline)
        } else {
            console.print("It does not match.")
        }
    }
}
