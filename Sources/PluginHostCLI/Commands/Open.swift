internal import PluginABI

/// `pluginhost open URL`
struct Open: Question {
    static let local = OptionSpecification(
        name: "--local", help: "Open it as this program itself would, not as a remote caller.")

    static let specification = CommandSpecification(
        name: "open",
        overview: "Open a URL, as a remote caller, and print the result.",
        discussion: "A remote caller reaches only actions that are declared remote.",
        arguments: [
            ArgumentSpecification(name: "url", help: "The URL, for instance 'app://target/action?name=value'.")
        ],
        options: [local] + OptionSpecification.hosting + [.timeout, .attach, .json])

    let arguments: ParsedArguments
    private let timeout: Duration?

    init(_ arguments: ParsedArguments) throws(PluginError) {
        self.arguments = arguments
        timeout = try arguments.timeout
    }

    func ask(_ service: any HostService, _ console: Console) async throws(PluginError) {
        let result = try await service.open(
            arguments.positionals[0], [:], isLocal: arguments.has(Self.local), timeout: timeout)
        console.printResult(result, asJSON: arguments.has(.json))
    }
}
