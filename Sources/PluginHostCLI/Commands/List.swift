internal import PluginABI

/// `pluginhost list`
enum List: Question {
    static let all = OptionSpecification(
        name: "--all", help: "Show every generation instead: its calls, its objects, and why it still exists.")

    static let specification = CommandSpecification(
        name: "list",
        overview: "Show the modules with their version, state, targets and file.",
        discussion: "A module that has failed is listed with the reason; the exit code is still 0.",
        options: OptionSpecification.hosting + [all, .attach, .json])

    static func parameters(_ arguments: ParsedArguments) -> [String: Value] {
        arguments.has(all) ? ["all": true] : [:]
    }

    static func show(_ answer: Value, _ invocation: Invocation) {
        if invocation.has(all) {
            invocation.console.printGenerations(answer)
        } else {
            invocation.console.print(.modules, of: answer)
        }
    }
}
