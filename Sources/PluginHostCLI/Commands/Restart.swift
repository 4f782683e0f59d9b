internal import PluginABI

/// `pluginhost restart NAME`
enum Restart: Question {
    static let specification = CommandSpecification(
        name: "restart",
        overview: "Start an isolated module again, in a new process.",
        discussion:
            "The module hands its state over if it can. A module that has crashed too often is tried once more. Only "
            + "modules that run in processes of their own ('--isolate') can be restarted.",
        arguments: [ArgumentSpecification(name: "name", kind: .module, help: "The name of the module.")],
        options: OptionSpecification.hosting + [.attach, .json])

    static func parameters(_ arguments: ParsedArguments) -> [String: Value] {
        ["name": .string(arguments.positionals[0])]
    }

    static func show(_ answer: Value, _ invocation: Invocation) {
        invocation.console.print("restarted \(answer.text("name").printable) in process \(answer.number("process"))")
    }
}
