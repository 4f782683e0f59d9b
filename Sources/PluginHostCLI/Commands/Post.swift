internal import PluginABI

/// `pluginhost post EVENT [name=value …]`
struct Post: Question {
    static let sticky = OptionSpecification(
        name: "--sticky", help: "Keep the event for modules that come later.")

    static let specification = CommandSpecification(
        name: "post",
        overview: "Post an event to everybody who subscribes to it, and print what has become of it.",
        discussion:
            "Waits until asynchronous subscribers have ended. A subscriber that fails does not stop the others.",
        arguments: [
            ArgumentSpecification(name: "event", help: "The name of the event."),
            ArgumentSpecification(
                name: "name=value", isRequired: false, repeats: true,
                help: "The parameters of the event, read as by 'call'."),
        ],
        options: OptionSpecification.hosting + [sticky, .timeout, .attach, .json])

    let arguments: ParsedArguments
    private let event: String
    private let parameters: [String: Value]
    private let timeout: Duration?

    init(_ arguments: ParsedArguments) throws(PluginError) {
        self.arguments = arguments
        event = arguments.positionals[0]
        parameters = try Call.parameters(arguments.positionals.dropFirst())
        timeout = try arguments.timeout
    }

    func ask(_ service: any HostService, _ console: Console) async throws(PluginError) {
        let outcome = try await service.post(
            event, parameters, sticky: arguments.has(Self.sticky), timeout: timeout)
        guard !arguments.has(.json) else { return console.print(outcome.json) }
        let count = outcome["delivered"]?.int ?? 0
        console.print("\(count) \(count == 1 ? "subscriber" : "subscribers")")
        for failure in outcome["failures"]?.list ?? [] {
            let source = failure["source"]?.string ?? "the program"
            let message = "\(failure["message"]?.string ?? "") (\(failure["code"]?.string ?? ""))"
            console.print("failed in \(source): \(message)".printable)
        }
    }
}
