internal import PluginABI

/// `pluginhost versions NAME`
enum Versions: Question {
    static let specification = CommandSpecification(
        name: "versions",
        overview: "Show the kept versions of a module, the most recently kept first.",
        discussion: "A version is kept when it is replaced, removed or rolled back. 'rollback' puts one back.",
        arguments: [ArgumentSpecification(name: "name", kind: .module, help: "The name of the module.")],
        options: OptionSpecification.hosting + [.attach, .json])

    static func parameters(_ arguments: ParsedArguments) -> [String: Value] {
        ["name": .string(arguments.positionals[0])]
    }

    static func show(_ answer: Value, _ invocation: Invocation) {
        let console = invocation.console
        let list = (answer.list ?? []).filter { $0["error"] == nil }
        let leftOut = (answer.list ?? []).compactMap { $0["error"]?["message"]?.string }
        if list.isEmpty {
            let condition = leftOut.isEmpty ? "is kept" : "can be put back"
            console.print("No version of \(invocation.arguments.positionals[0].shortened) \(condition).")
        } else {
            console.print(.versions, of: .list(list))
        }
        guard !leftOut.isEmpty else { return }
        console.print("\(counted(leftOut.count, "kept version")) left out:")
        for reason in Set(leftOut).sorted() { console.print("  \(reason.printable)") }
    }
}
