internal import PluginABI

/// `pluginhost services`
enum Services: Question {
    static let specification = CommandSpecification(
        name: "services",
        overview: "Show the services with the modules that implement them; of each name the one that serves first.",
        options: OptionSpecification.hosting + [.attach, .json])

    static func show(_ answer: Value, _ invocation: Invocation) { invocation.console.print(.services, of: answer) }
}
