internal import PluginABI

/// `pluginhost services`
struct Services: Question {
    static let specification = CommandSpecification(
        name: "services",
        overview: "Show the services with the modules that implement them; of each name the one that serves first.",
        options: OptionSpecification.hosting + [.attach, .json])

    let arguments: ParsedArguments

    init(_ arguments: ParsedArguments) { self.arguments = arguments }

    func ask(_ service: any HostService, _ console: Console) async throws(PluginError) {
        let services = try await service.services()
        if arguments.has(.json) {
            console.print(services.json)
        } else {
            let table = ServiceTable(services: services.list ?? [], style: console.outputStyle, width: console.width)
            console.print(table.text)
        }
    }
}
