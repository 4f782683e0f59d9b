internal import PluginABI

/// `pluginhost routes`
enum Routes: Question {
    static let specification = CommandSpecification(
        name: "routes",
        overview: "Show the routes with the actions that they lead to, and where they overlap.",
        options: OptionSpecification.hosting + [.attach, .json])

    static func show(_ answer: Value, _ invocation: Invocation) { invocation.console.print(.routes, of: answer) }
}
