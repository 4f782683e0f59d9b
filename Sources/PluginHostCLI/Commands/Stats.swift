internal import PluginABI

/// `pluginhost stats`
enum Stats: Question {
    static let processes = OptionSpecification(
        name: "--processes",
        help: "Also show the processes of isolated modules: their memory, processor time and restarts.")

    static let specification = CommandSpecification(
        name: "stats",
        overview: "Show how often each action was called, with how many errors, and how long calls took.",
        discussion: "With '--json', prints a list of actions; with '--processes' as well, an object with the lists "
            + "'actions' and 'processes'.",
        options: OptionSpecification.hosting + [processes, .attach, .json])

    static func parameters(_ arguments: ParsedArguments) -> [String: Value] {
        arguments.has(processes) ? ["processes": true] : [:]
    }

    static func show(_ answer: Value, _ invocation: Invocation) {
        guard invocation.has(processes) else { return invocation.console.print(.statistics, of: answer) }
        invocation.console.print(.statistics, of: answer["actions"] ?? [])
        invocation.console.print(.processes, of: answer["processes"] ?? [])
    }
}
