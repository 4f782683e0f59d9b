internal import PluginABI

/// `pluginhost stats`
struct Stats: Question {
    static let specification = CommandSpecification(
        name: "stats",
        overview: "Show how often each action was called, with how many errors, and how long calls took.",
        options: OptionSpecification.hosting + [.attach, .json])

    let arguments: ParsedArguments

    init(_ arguments: ParsedArguments) { self.arguments = arguments }

    func ask(_ service: any HostService, _ console: Console) async throws(PluginError) {
        let statistics = try await service.statistics()
        if arguments.has(.json) {
            console.print(statistics.json)
        } else {
            let table = StatisticsTable(
                statistics: statistics.list ?? [], style: console.outputStyle, width: console.width)
            console.print(table.text)
        }
    }
}
