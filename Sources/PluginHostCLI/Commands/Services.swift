internal import PluginABI

/// `pluginhost services`
enum Services: Question {
    static let specification = CommandSpecification(
        name: "services",
        overview: "Show the services with the modules that implement them; for each name, the preferred one first.",
        options: OptionSpecification.hosting + [.attach, .json])

    static func show(_ answer: Value, _ invocation: Invocation) { invocation.console.print(.services, of: answer) }
}
