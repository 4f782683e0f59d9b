internal import PluginABI

/// `pluginhost stats`
enum Stats: Question {
    static let specification = CommandSpecification(
        name: "stats",
        overview: "Show how often each action was called, with how many errors, and how long calls took.",
        options: OptionSpecification.hosting + [.attach, .json])

    static func show(_ answer: Value, _ invocation: Invocation) { invocation.console.print(.statistics, of: answer) }
}
