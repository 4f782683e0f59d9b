internal import PluginABI

/// `pluginhost versions NAME`
struct Versions: Question {
    static let specification = CommandSpecification(
        name: "versions",
        overview: "Show the versions of a module that are kept, the newest first.",
        discussion: "They were replaced, removed or rolled back; 'rollback' puts one back.",
        arguments: [ArgumentSpecification(name: "name", help: "The name of the module.")],
        options: OptionSpecification.hosting + [.attach, .json])

    let arguments: ParsedArguments

    init(_ arguments: ParsedArguments) { self.arguments = arguments }

    func ask(_ service: any HostService, _ console: Console) async throws(PluginError) {
        let versions = try await service.versions(arguments.positionals[0])
        guard !arguments.has(.json) else { return console.print(versions.json) }
        let list = (versions.list ?? []).filter { $0["error"] == nil }
        let leftOut = (versions.list ?? []).compactMap { $0["error"]?["message"]?.string }
        defer { Self.tell(leftOut, console) }
        guard !list.isEmpty else {
            let condition = leftOut.isEmpty ? "is kept" : "can be put back"
            return console.print("No version of \(arguments.positionals[0].shortened) \(condition).")
        }
        var table = TextTable(
            titles: ["VERSION", "KEPT", "SIZE", "NOTE", "FILE"], style: console.outputStyle, width: console.width)
        for version in list {
            table.add([
                version["version"]?.string ?? "", version["kept"]?.string ?? "",
                (version["bytes"]?.int ?? 0).inBytes, version["serving"] == true ? "serves" : "-",
                version["file"]?.string ?? "",
            ])
        }
        console.print(table.text)
    }

    private static func tell(_ leftOut: [String], _ console: Console) {
        guard !leftOut.isEmpty else { return }
        console.print("\(counted(leftOut.count, "kept version")) left out:")
        for reason in Set(leftOut).sorted() { console.print("  \(reason.printable)") }
    }
}
