internal import FoundationEssentials
internal import Glibc
internal import PluginABI
internal import PluginHost

/// `pluginhost events`
struct Events: Command {
    static let follow = OptionSpecification(
        name: "--follow", short: "-f", help: "Go on with what happens, until the host ends.")

    static let specification = CommandSpecification(
        name: "events",
        overview: "Show what has happened to the modules of a running host.",
        discussion: "The last \(EventLog.limit) changes, each on a line; with '--json' as an object.",
        options: [follow, .attach, .json])

    private let arguments: ParsedArguments

    init(_ arguments: ParsedArguments) { self.arguments = arguments }

    func run(_ environment: CommandEnvironment) async throws(PluginError) {
        guard let path = arguments.value(of: .attach) else {
            throw PluginError(
                .usage, "'events' asks a running host; name its socket with '\(OptionSpecification.attach.name)'.")
        }
        let host = try AttachedHost(path: path)
        var answer = try await host.events(after: nil, timeout: nil)
        show(answer, environment.console)
        while arguments.has(Self.follow), answer["over"] != true, !environment.console.isClosed {
            answer = try await host.events(after: answer["last"]?.int, timeout: .seconds(30))
            show(answer, environment.console)
        }
    }

    private func show(_ answer: Value, _ console: Console) {
        if let missed = answer["missed"]?.int, missed > 0 {
            let text = "\(missed) changes came faster than they were asked for."
            console.print(arguments.has(.json) ? Value.map(["event": "missed", "count": .int(missed)]).json : text)
        }
        for event in answer["events"]?.list ?? [] {
            if arguments.has(.json) {
                console.print(event.json)
            } else {
                let time = (event["time"]?.string).flatMap { try? Date($0, strategy: .iso8601) } ?? .now
                console.print(
                    console.outputStyle(time.timeOfDay, .dim) + "  " + (event["text"]?.string ?? "").printable)
            }
        }
    }
}

extension Date {
    /// In the local time zone: `17:04:59`.
    var timeOfDay: String {
        var seconds = time_t(timeIntervalSince1970)
        var parts = tm()
        localtime_r(&seconds, &parts)
        return [parts.tm_hour, parts.tm_min, parts.tm_sec].map { $0 < 10 ? "0\($0)" : "\($0)" }.joined(separator: ":")
    }
}
