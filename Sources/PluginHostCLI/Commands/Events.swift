internal import PluginABI

/// `pluginhost events`
enum Events: Command {
    static let follow = OptionSpecification(
        name: "--follow", short: "-f", help: "Continue with new changes until the host ends.")

    static let specification = CommandSpecification(
        name: "events",
        overview: "Show the changes of modules of a running host.",
        discussion: "Prints the last \(EventLog.limit) changes, one per line; with '--json', each as an object.",
        options: [follow, .attach, .json])

    static func run(_ invocation: Invocation) async throws(PluginError) {
        guard let host = try invocation.runningHost() else {
            throw .usage("'events' needs a running host; pass its socket with '\(OptionSpecification.attach.name)'.")
        }
        var answer = try await host.request("events", [:])
        show(answer, invocation)
        while invocation.has(follow), answer["over"] != true, !invocation.console.isClosed {
            var parameters: [String: Value] = ["timeout": 30]
            parameters["after"] = answer["last"]?.int.map(Value.int)
            do throws(PluginError) { answer = try await host.request("events", parameters) } catch {
                // The host may end between two requests.
                guard error.code == .hostStopped else { throw error }
                return
            }
            show(answer, invocation)
        }
    }

    private static func show(_ answer: Value, _ invocation: Invocation) {
        let announcer = Announcer(console: invocation.console, asJSON: invocation.isJSON)
        if let missed = answer["missed"]?.int, missed > 0 { announcer.missed(missed) }
        for event in answer.list("events") { announcer.remembered(event) }
    }
}
