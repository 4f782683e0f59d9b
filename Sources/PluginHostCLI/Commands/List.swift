internal import PluginABI

/// `pluginhost list`
struct List: Question {
    static let all = OptionSpecification(
        name: "--all", help: "Show every generation instead: its calls, its objects, and why it is still there.")

    static let specification = CommandSpecification(
        name: "list",
        overview: "Show the modules with their version, state, targets and file.",
        discussion: "A module that failed is listed with its reason; the exit code is 0 all the same.",
        options: OptionSpecification.hosting + [all, .attach, .json])

    let arguments: ParsedArguments

    init(_ arguments: ParsedArguments) { self.arguments = arguments }

    func ask(_ service: any HostService, _ console: Console) async throws(PluginError) {
        if arguments.has(Self.all) {
            let generations = try await service.generations()
            let table = GenerationTable(record: generations, style: console.outputStyle, width: console.width)
            return console.print(arguments.has(.json) ? generations.json : table.text)
        }
        let modules = try await service.list()
        if arguments.has(.json) {
            console.print(modules.json)
        } else {
            console.print(
                ModuleTable(modules: modules.list ?? [], style: console.outputStyle, width: console.width).text)
        }
    }
}
