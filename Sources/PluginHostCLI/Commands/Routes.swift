internal import PluginABI

/// `pluginhost routes`
struct Routes: Question {
    static let specification = CommandSpecification(
        name: "routes",
        overview: "Show the routes with the actions that they lead to, and where they overlap.",
        options: OptionSpecification.hosting + [.attach, .json])

    let arguments: ParsedArguments

    init(_ arguments: ParsedArguments) { self.arguments = arguments }

    func ask(_ service: any HostService, _ console: Console) async throws(PluginError) {
        let routes = try await service.routes()
        if arguments.has(.json) {
            console.print(routes.json)
        } else {
            console.print(RouteTable(routes: routes.list ?? [], style: console.outputStyle, width: console.width).text)
        }
    }
}
