internal import FoundationEssentials
internal import Glibc
internal import PluginABI
internal import PluginHost

/// `pluginhost run`
struct Run: Command {
    static let socket = OptionSpecification(
        name: "--socket", value: "path", help: "Answer other commands ('--attach') on a Unix socket at this path.")

    static let maxCalls = OptionSpecification(
        name: "--max-calls", value: "count",
        help: "How many calls of the socket run at a time, besides the first one of each client; more of them end with "
            + "'overloaded'. (default: \(CallSlots.Limits().shared))")

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
        options: OptionSpecification.hosting + [socket, maxCalls, timeout, trace, profile, navigate, .json])

    private let arguments: ParsedArguments

    init(_ arguments: ParsedArguments) { self.arguments = arguments }

    func run(_ environment: CommandEnvironment) async throws(PluginError) {
        let announcer = Announcer(console: environment.console, asJSON: arguments.has(.json))
        let log = try arguments.log(to: environment.console, from: .info)
        let configuration = try arguments.configuration(environment: environment.variables, log: log)
        if let file = arguments.value(of: Self.trace) { try Self.write("", to: file) }
        var limits = ControlServer.Limits()
        if let calls = try maxCalls { limits.calls.shared = calls }
        let stop = try StopRequest()
        buffer(environment.console)
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
        // The threads that write stop with the rest: what modules have said to it is written before.
        let console = environment.console
        let flushing = host.on("host.suspended") { _ in console.flush() }
        defer { flushing.cancel() }
        let changes = host.changes
        announcer.started(host.modules)
        announcer.watching(configuration.folders)

        let service = LocalHost(host: host, trustsEveryone: configuration.trustsEveryone)
        var server: ControlServer?
        if let path = arguments.value(of: Self.socket) {
            let methods = ControlMethods(service: service)
            server = try ControlServer(path: path, limits: limits, log: log) {
                method, parameters async throws(RPCError) in
                try await methods.handle(method, parameters)
            }
            announcer.listening(path)
        }
        Self.takeBackSignals(log)
        let follower = Task(executorPreference: BlockingExecutor.shared) {
            for await change in changes {
                service.changes.add(change)
                announcer.changed(change)
                Self.takeBackSignals(log)
            }
        }
        if let navigation {
            Task(executorPreference: BlockingExecutor.shared) {
                await navigation.run()
                stop.stop()
            }
        } else if Prompt.isPossible {
            let prompt = Prompt(service: service, console: environment.console)
            Task(executorPreference: BlockingExecutor.shared) {
                await prompt.run()
                stop.stop()
            }
        }
        stop.wait()
        stop.hasBegun()
        environment.console.promptAnswered()
        announcer.stopping()
        service.changes.finish()
        server?.stop()
        follower.cancel()
        host.shutdown()
        if arguments.has(Self.profile) {
            let table = ProfileTable(profile: host.profile, console: environment.console)
            environment.console.print(arguments.has(.json) ? host.profile.record.json : table.text)
        }
        if let file = arguments.value(of: Self.trace) { try Self.write(host.profile.chromeTrace, to: file) }
    }

    /// A module that ignores SIGTERM must not make the program immortal.
    private static func takeBackSignals(_ log: @Sendable (LogEntry) -> Void) {
        let names = StopRequest.takeBack()
        guard !names.isEmpty else { return }
        log(
            LogEntry(
                level: .warning,
                message:
                    "A module has changed what \(names.joined(separator: " and ")) does; that ends the program again."
            ))
    }

    private var maxCalls: Int? {
        get throws(PluginError) { try arguments.wholeNumber(of: Self.maxCalls, "calls", in: 1...4096) }
    }

    /// A module that logs must not wait for whoever reads.
    private func buffer(_ console: Console) {
        let asJSON = arguments.has(.json)
        let logsJSON = arguments.value(of: .log) == "json"
        let reason = "nobody read them in time (\(ConsoleStream.bufferLimit) bytes wait at most)"
        console.beginBuffering { lines in
            asJSON
                ? Value.map(["event": "lost", "lines": .int(lines)]).json : "\(lines) lines were lost here: \(reason)."
        } _: { lines in
            let entry = LogEntry(level: .warning, message: "\(lines) lines of the log were lost here: \(reason).")
            return logsJSON ? entry.record.json : "Warning: \(entry.message)"
        }
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
