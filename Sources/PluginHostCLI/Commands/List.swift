internal import PluginABI

/// `pluginhost list`
enum List: Question {
    static let all = OptionSpecification(
        name: "--all", help: "Show every generation instead: its calls, its objects, and why it still exists.")

    static let specification = CommandSpecification(
        name: "list",
        overview: "Show the modules with their version, state, targets and file.",
        discussion: "A module that has failed is listed with the reason; the exit code is still 0. Other problems "
            + "with the folders and route files of a running host are printed on standard error; a host of the "
            + "command's own logs them there.",
        options: OptionSpecification.hosting + [all, .attach, .json])

    static func parameters(_ arguments: ParsedArguments) -> [String: Value] {
        arguments.has(all) ? ["all": true] : [:]
    }

    static func ask(_ host: any HostService, _ invocation: Invocation) async throws(PluginError) {
        let answer = try await host.request("list", invocation.parameters)
        try tell(answer, invocation)
        guard host is AttachedHost else { return }
        let shown = Set((answer.list ?? []).flatMap { $0.list("problems") }.map { $0.text("message") })
        for problem in try await host.request("problems", [:]).list ?? [] where !shown.contains(problem.text("message"))
        {
            invocation.console.diagnose("\(problem.text("message")) (\(problem.text("code")))")
        }
    }

    static func show(_ answer: Value, _ invocation: Invocation) {
        if invocation.has(all) {
            invocation.console.printGenerations(answer)
        } else {
            invocation.console.print(.modules, of: answer)
        }
    }
}
