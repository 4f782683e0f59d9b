internal import PluginABI
internal import PluginFacades
internal import PluginFile
internal import PluginHost

/// `pluginhost facade MODULE_OR_FILE`
struct MakeFacade: Question {
    static let name = OptionSpecification(
        name: "--name", value: "type",
        help: "The name of the enum that everything stands in. (default: that of the module, and 'Facade')")
    static let isPublic = OptionSpecification(name: "--public", help: "Make everything public, for a library.")

    static let specification = CommandSpecification(
        name: "facade",
        overview: "Print a Swift file with a function for each action of a module.",
        discussion:
            "The file compiles in modules and in programs: it needs PluginABI alone. It has a type for each target, "
            + "for each type of objects and for each service, and an enum of the URLs. Make it again when the "
            + "module has "
            + "changed: 'pluginhost facade libA.so > Sources/B/AFacade.swift'.",
        arguments: [
            ArgumentSpecification(
                name: "module", help: "A shared library, if there is a '/' or a '.so' in it; else the name of a module."
            )
        ],
        options: [name, isPublic] + OptionSpecification.hosting + [.timeout, .attach])

    let arguments: ParsedArguments
    private let subject: String
    private let timeout: Duration?

    init(_ arguments: ParsedArguments) throws(PluginError) {
        self.arguments = arguments
        subject = arguments.positionals[0]
        timeout = try arguments.timeout
    }

    private var isFile: Bool { subject.contains("/") || subject.hasSuffix(".so") }

    func run(_ environment: CommandEnvironment) async throws(PluginError) {
        guard !isFile || arguments.value(of: .attach) != nil else {
            // No host is needed for that.
            let inspection = Inspection(file: subject, trustsEveryone: arguments.has(.trust), deadline: timeout)
            return try show(try await inspection.run(), environment.console)
        }
        let (service, end) = try HostSession.begin(arguments, environment)
        defer { end() }
        try await ask(service, environment.console)
    }

    func ask(_ service: any HostService, _ console: Console) async throws(PluginError) {
        let file = isFile ? subject : try await file(of: subject, service)
        try show(try await service.inspect(file, timeout: timeout), console)
    }

    /// The file of the module that serves under a name, or else of one that would.
    private func file(of name: String, _ service: any HostService) async throws(PluginError) -> String {
        let modules = try await service.list().list ?? []
        let named = modules.filter { $0["name"]?.string == name }
        guard let module = named.first(where: { $0["state"] == "active" }) ?? named.first else {
            let close = didYouMean(name, modules.compactMap { $0["name"]?.string })
            throw PluginError(
                .unknownModule,
                "There is no module “\(name.shortened)”.\(close) To name a file, write './\(name.shortened)'.")
        }
        let file = module["file"]?.string ?? ""
        guard !file.hasPrefix("(") else {
            throw PluginError(
                .unknownModule, "\(name) is a part of the program: there is no file to read its manifest from.")
        }
        return file
    }

    private func show(_ report: Value, _ console: Console) throws(PluginError) {
        let facade = try Facade(
            manifest: report["manifest"]?.json ?? "", name: arguments.value(of: Self.name),
            isPublic: arguments.has(Self.isPublic))
        console.printUnchanged(String(facade.text.dropLast()))
    }
}
