internal import PluginABI
internal import PluginFacades
internal import PluginFile

/// `pluginhost facade MODULE_OR_FILE`
enum MakeFacade: Question {
    static let name = OptionSpecification(
        name: "--name", value: "type",
        help: "The name of the enum that contains everything. (default: the module's name followed by 'Facade')")
    static let isPublic = OptionSpecification(name: "--public", help: "Make everything public, for a library.")

    static let specification = CommandSpecification(
        name: "facade",
        overview: "Print a Swift file with a function for each action of a module.",
        discussion:
            "The file compiles in modules and in programs: it needs only PluginABI. It has a type for each target, "
            + "each object type, each record and enumeration and each service, and an enum of the URLs. Generate it again "
            + "when the module has changed: 'pluginhost facade libA.so > Sources/B/AFacade.swift'.",
        arguments: [
            ArgumentSpecification(
                name: "module", kind: .moduleOrFile,
                help: "The name of a module, or a shared library (contains '/' or ends in '.so').")
        ],
        options: [name, isPublic] + OptionSpecification.hosting + [.timeout, .attach])

    static func parameters(_ arguments: ParsedArguments) throws(PluginError) -> [String: Value] {
        try ["file": .string(arguments.positionals[0])].withTimeout(of: arguments)
    }

    private static func isFile(_ subject: String) -> Bool { subject.contains("/") || subject.hasSuffix(".so") }

    static func answerWithoutHost(_ arguments: ParsedArguments) async throws(PluginError) -> Value? {
        let isOfHost = !isFile(arguments.positionals[0]) || arguments.has(.attach)
        return isOfHost ? nil : try await Inspect.answerWithoutHost(arguments)
    }

    static func ask(_ host: any HostService, _ invocation: Invocation) async throws(PluginError) {
        var parameters = invocation.parameters
        let subject = invocation.arguments.positionals[0]
        if !isFile(subject) { parameters["file"] = .string(try await file(of: subject, host)) }
        try show(await host.request("inspect", parameters), invocation)
    }

    /// Returns the file of the active module with a name or, if none is active, of any module with that name.
    private static func file(of name: String, _ host: any HostService) async throws(PluginError) -> String {
        let modules = try await host.request("list", [:]).list ?? []
        let named = modules.filter { $0["name"]?.string == name }
        guard let module = named.first(where: { $0["state"] == "active" }) ?? named.first else {
            let close = didYouMean(name, modules.compactMap { $0["name"]?.string })
            throw PluginError(
                .unknownModule,
                "There is no module “\(name.shortened)”.\(close) To name a file, write './\(name.shortened)'.")
        }
        let file = module.text("file")
        guard !file.hasPrefix("(") else {
            throw PluginError(
                .unknownModule, "\(name) is part of the program: there is no file to read its manifest from.")
        }
        return file
    }

    static func show(_ answer: Value, _ invocation: Invocation) throws(PluginError) {
        let facade = try Facade(
            manifest: answer["manifest"]?.json ?? "", name: invocation.arguments.value(of: name),
            isPublic: invocation.has(isPublic))
        for note in answer["notes"]?.list ?? [] { invocation.console.diagnose("Warning: \(note.string ?? "")") }
        invocation.console.printUnchanged(String(facade.text.dropLast()))
    }
}
