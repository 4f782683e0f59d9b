internal import FoundationEssentials
internal import Glibc
internal import PluginABI
internal import PluginHost

/// `pluginhost run`
struct Run: Command {
    static let socket = OptionSpecification(
        name: "--socket", value: "path", help: "Answer other commands ('--attach') on a Unix socket at this path.")

    static let timeout = OptionSpecification(
        name: OptionSpecification.timeout.name, value: "seconds",
        help: "The deadline of asynchronous calls that bring none of their own.")

    static let trace = OptionSpecification(
        name: "--trace", value: "file", help: "At the end, write where the time has gone, as a Chrome trace.")

    static let profile = OptionSpecification(
        name: "--profile", help: "At the end, print where the time has gone.")

    static let navigate = OptionSpecification(
        name: "--navigate",
        help:
            "Take commands from standard input that open and close pages of the modules, and show them. (at the prompt: "
            + "help)")

    static let specification = CommandSpecification(
        name: "run",
        overview: "Load the modules, watch their folders, and serve until SIGINT or SIGTERM.",
        discussion: "Prints what is loaded and each change as it happens. On a terminal it takes the other commands "
            + "at a prompt.",
        options: OptionSpecification.hosting + [socket, timeout, trace, profile, navigate, .json])

    private let arguments: ParsedArguments

    init(_ arguments: ParsedArguments) { self.arguments = arguments }

    func run(_ environment: CommandEnvironment) async throws(PluginError) {
        let announcer = Announcer(console: environment.console, asJSON: arguments.has(.json))
        let log = try arguments.log(to: environment.console, from: .info)
        let configuration = try arguments.configuration(environment: environment.variables, log: log)
        if let file = arguments.value(of: Self.trace) { try Self.write("", to: file) }
        let stop = StopRequest()
        var navigation: NavigationPrompt?
        let host = try HostSession.started(configuration) { (host) throws(PluginError) in
            guard arguments.has(Self.navigate) else { return }
            navigation = try NavigationPrompt(host, console: environment.console, asJSON: arguments.has(.json))
        }
        defer { host.shutdown() }
        let watcher = arguments.value(of: .config).map { path in
            ConfigurationWatcher(ConfigurationFile(path: path), host, log: log)
        }
        defer { watcher?.stop() }
        let suspension = host.installSignalEvents()
        defer { suspension.cancel() }
        let changes = host.changes
        announcer.started(host.modules)
        announcer.watching(configuration.folders)

        let service = LocalHost(host: host, trustsEveryone: configuration.trustsEveryone)
        var server: ControlServer?
        if let path = arguments.value(of: Self.socket) {
            let methods = ControlMethods(service: service)
            server = try ControlServer(path: path) { method, parameters async throws(RPCError) in
                try await methods.handle(method, parameters)
            }
            announcer.listening(path)
        }
        let follower = Task {
            for await change in changes {
                service.changes.add(change)
                announcer.changed(change)
            }
        }
        if let navigation {
            Task {
                await navigation.run()
                stop.stop()
            }
        } else if Prompt.isPossible {
            let prompt = Prompt(service: service, console: environment.console)
            Task {
                await prompt.run()
                stop.stop()
            }
        }
        await stop.wait()
        environment.console.promptAnswered()
        announcer.stopping()
        service.changes.finish()
        await server?.stop()
        follower.cancel()
        host.shutdown()
        if arguments.has(Self.profile) {
            let table = ProfileTable(profile: host.profile, console: environment.console)
            environment.console.print(arguments.has(.json) ? host.profile.record.json : table.text)
        }
        if let file = arguments.value(of: Self.trace) { try Self.write(host.profile.chromeTrace, to: file) }
    }

    private static func write(_ text: String, to file: String) throws(PluginError) {
        do { try Data(text.utf8).write(to: URL(filePath: file)) } catch {
            throw PluginError(.unreadable, "The trace \(file) cannot be written.")
        }
    }
}

/// Tells what happens to a running host: in lines with the time for people, in objects for programs.
private struct Announcer: Sendable {
    let console: Console
    let asJSON: Bool

    func started(_ modules: [ModuleStatus]) {
        let records = modules.map(\.record)
        if asJSON {
            emit(["event": "started", "modules": .list(records)], "")
        } else {
            console.print(ModuleTable(modules: records, style: console.outputStyle, width: console.width).text)
        }
    }

    func watching(_ folders: [String]) {
        let names = folders.map(\.printable).joined(separator: ", ")
        emit(["event": "watching", "folders": .list(folders.map { .string($0) })], "Watching \(names)")
    }

    func listening(_ path: String) {
        emit(["event": "listening", "socket": .string(path)], "Listening on \(path.printable)")
    }

    func changed(_ change: HostChange) { emit(change.record, change.description.printable) }

    func stopping() { emit(["event": "stopping"], "Stopping") }

    private func emit(_ record: Value, _ text: String) {
        if asJSON, case .map(var entries) = record {
            entries["time"] = .string(Date.now.ISO8601Format())
            console.print(Value.map(entries).json)
        } else {
            console.print(console.outputStyle(Date.now.timeOfDay, .dim) + "  " + text)
        }
    }
}
