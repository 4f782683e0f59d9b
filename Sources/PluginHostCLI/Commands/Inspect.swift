internal import PluginABI

/// `pluginhost inspect FILE`
struct Inspect: Question {
    static let specification = CommandSpecification(
        name: "inspect",
        overview: "Show everything that one file says about itself, without registering it.",
        discussion: "The file's code runs in a process of its own: one that crashes, or does not come to an end within "
            + "the timeout (default: 10 seconds), is reported as a bad file.",
        arguments: [ArgumentSpecification(name: "file", help: "The shared library.")],
        options: [.trust, .timeout, .json])

    let arguments: ParsedArguments
    private let timeout: Duration?

    init(_ arguments: ParsedArguments) throws(PluginError) {
        self.arguments = arguments
        timeout = try arguments.timeout
    }

    func run(_ environment: CommandEnvironment) async throws(PluginError) {
        let inspection = Inspection(
            file: arguments.positionals[0], trustsEveryone: arguments.has(.trust), deadline: timeout)
        show(try await inspection.run(), environment.console)
    }

    func ask(_ service: any HostService, _ console: Console) async throws(PluginError) {
        show(try await service.inspect(arguments.positionals[0], timeout: timeout), console)
    }

    private func show(_ report: Value, _ console: Console) {
        console.print(arguments.has(.json) ? report.json : report.outline)
    }
}
