internal import FoundationEssentials
internal import PluginABI
internal import PluginHost

/// `pluginhost run`
enum Run: Command {
    static let socket = OptionSpecification(
        name: "--socket", value: "path",
        help:
            "Answer other commands ('--attach') on a Unix socket at this path. (default: $PLUGINHOST_SOCKET, else "
            + "$XDG_RUNTIME_DIR/pluginhost.sock, unless another host listens there; none if $PLUGINHOST_SOCKET is "
            + "empty)")

    static let maxCalls = OptionSpecification(
        name: "--max-calls", value: "count",
        help: "The number of calls from the socket that run at a time, besides the first one of each client. Calls "
            + "beyond it end with 'overloaded'. (default: \(CallSlots.Limits().shared))")

    static let timeout = OptionSpecification(
        name: OptionSpecification.timeout.name, value: "seconds",
        help: "The timeout of asynchronous calls that have none of their own.")

    static let stopPatience = OptionSpecification(
        name: "--stop-patience", value: "seconds",
        help: "How long after the first signal the shutdown must have begun; otherwise the program ends immediately. "
            + "Rounded up to whole seconds. (default: \(StopRequest.patience))")

    static let trace = OptionSpecification(
        name: "--trace", value: "file", help: "At the end, write how time was spent, as a Chrome trace.")

    static let profile = OptionSpecification(
        name: "--profile", help: "At the end, print how time was spent.")

    static let navigate = OptionSpecification(
        name: "--navigate",
        help:
            "Show pages of the modules, and read commands that open and close them from standard input. (at the "
            + "prompt: help)")

    static let specification = CommandSpecification(
        name: "run",
        overview: "Load the modules, watch their folders, and serve until SIGINT or SIGTERM.",
        discussion:
            "Prints the loaded modules, and each change as it happens, with local times. On a terminal, it accepts the "
            + "other commands at a prompt. SIGHUP ends it if it has a controlling terminal; otherwise it makes the "
            + "program scan the folders and read the configuration again. It reports its state to systemd "
            + "(Type=notify, WatchdogSec=).",
        options: OptionSpecification.hosting
            + [.debugWorker, socket, maxCalls, timeout] + Deadline.all.map(\.option)
            + [stopPatience, trace, profile, navigate, .jsonLog, .json])

    static func run(_ invocation: Invocation) async throws(PluginError) {
        let (arguments, console) = (invocation.arguments, invocation.console)
        let announcer = Announcer(console: console, asJSON: invocation.isJSON)
        let log = try arguments.log(to: console, from: .info, hasTimes: true)
        let configuration = try arguments.configuration(environment: invocation.variables, log: log)
        let traceFile = arguments.value(of: trace)
        if let traceFile { try write("", to: traceFile) }
        var limits = ControlServer.Limits()
        if let calls = try arguments.wholeNumber(of: maxCalls, "calls", in: 1...4096) { limits.calls.shared = calls }
        let stop = try StopRequest(patience: arguments.duration(of: stopPatience))
        // A signal that arrives while modules start is handled after the start.
        let hangup = HangupSignal.asksToReload ? HangupSignal() : nil
        defer { hangup?.cancel() }
        beginBuffering(invocation)
        let service = LocalHost(configuration)
        let host = service.host
        defer { host.shutdown() }
        var navigation: NavigationPrompt?
        if invocation.has(navigate) {
            navigation = try NavigationPrompt(
                host, console: console, variables: invocation.variables, asJSON: invocation.isJSON)
        }
        // The socket answers while modules start, so that a start that takes long can be looked at.
        let server = try startServer(service, limits, invocation, log)
        let noting = service.noteChanges()
        defer { noting.cancel() }
        do throws(PluginError) { try service.start() } catch {
            server?.stop()
            throw error
        }
        let watcher = arguments.value(of: .config).map { path in
            ConfigurationWatcher(ConfigurationFile(path: path), host, log: log)
        }
        defer { watcher?.stop() }
        let suspension = host.installSignalEvents()
        defer { suspension.cancel() }
        // Suspension also stops the threads that write, so the output of modules is written first.
        let flushing = host.on("host.suspended") { _ in
            LineEditor.suspend()
            console.flush()
        }
        let resuming = host.on("host.resumed") { _ in LineEditor.resume() }
        defer {
            flushing.cancel()
            resuming.cancel()
        }
        let changes = host.changes
        announcer.started(host.modules)
        announcer.watching(configuration.folders)
        if let server { announcer.listening(server.path) }
        takeBackSignals(log)
        let manager = ServiceManager(invocation.variables, log: log)
        hangup?.begin { reload(host, watcher, manager, log) }
        let follower = Task(executorPreference: BlockingExecutor.shared) {
            for await change in changes {
                announcer.changed(change)
                takeBackSignals(log)
            }
        }
        if navigation != nil || Prompt.isPossible {
            let prompt = Prompt(host: service, console: console, variables: invocation.variables)
            Task(executorPreference: BlockingExecutor.shared) { [navigation] in
                if let navigation { await navigation.run() } else { await prompt.run() }
                stop.stop()
            }
        }
        manager?.ready(host)
        manager?.watch(host)
        stop.wait()
        console.promptAnswered()
        LineEditor.close()
        stop.hasBegun()
        manager?.stopping()
        announcer.stopping()
        service.changes.finish()
        server?.stop()
        follower.cancel()
        host.shutdown()
        if invocation.has(profile) { console.printProfile(host.profile.record, asJSON: invocation.isJSON) }
        if let traceFile { try write(host.profile.chromeTrace, to: traceFile) }
    }

    /// Starts the control socket at the path of `--socket`, or at the default path. Returns `nil` if no path was given
    /// and the default one cannot be used, for instance because another host listens there.
    private static func startServer(
        _ service: LocalHost, _ limits: ControlServer.Limits, _ invocation: Invocation,
        _ log: @escaping @Sendable (LogEntry) -> Void
    ) throws(PluginError) -> ControlServer? {
        let given = invocation.arguments.value(of: socket)
        guard let path = given ?? DefaultSocket.path(invocation.variables) else { return nil }
        do throws(PluginError) {
            return try ControlServer(path: path, limits: limits, log: log, handler: service.answer)
        } catch {
            if given != nil { throw error }
            log(
                LogEntry(
                    level: .warning,
                    message: "\(error.line) This host has no socket; give it one of its own with '\(socket.name)'."))
            return nil
        }
    }

    /// Scans the folders and reads the configuration file again.
    private static func reload(
        _ host: PluginHost, _ watcher: ConfigurationWatcher?, _ manager: ServiceManager?,
        _ log: @Sendable (LogEntry) -> Void
    ) {
        manager?.reloading()
        log(LogEntry(level: .info, message: "SIGHUP: the folders and the configuration are read again."))
        watcher?.readAgain()
        do throws(PluginError) { try host.updateFolders() } catch {
            log(LogEntry(level: .warning, message: error.line))
        }
        manager?.ready(host)
    }

    /// Restores the handling of signals that a module has changed: a module that ignores SIGTERM must not keep the
    /// program from ending.
    private static func takeBackSignals(_ log: @Sendable (LogEntry) -> Void) {
        let names = StopRequest.takeBack()
        guard !names.isEmpty else { return }
        log(
            LogEntry(
                level: .warning,
                message:
                    "A module has changed the handling of \(names.joined(separator: " and ")). It was restored."))
    }

    /// Buffers output, so that a module that logs does not wait for the reader.
    private static func beginBuffering(_ invocation: Invocation) {
        let asJSON = invocation.isJSON
        let logsJSON = invocation.has(.jsonLog) || invocation.arguments.value(of: .log) == "json"
        let reason = "they were not read in time (at most \(ConsoleStream.bufferLimit) bytes are buffered)"
        invocation.console.beginBuffering { lines in
            asJSON
                ? Value.map(["event": "lost", "lines": .int(lines)]).json : "\(lines) lines were lost here: \(reason)."
        } _: { lines in
            let entry = LogEntry(level: .warning, message: "\(lines) lines of the log were lost here: \(reason).")
            return logsJSON ? entry.record.json : "\(Date.now.localTime)  Warning: \(entry.message)"
        }
    }

    private static func write(_ text: String, to file: String) throws(PluginError) {
        do { try Data(text.utf8).write(to: URL(filePath: file)) } catch {
            throw PluginError(.unreadable, "The trace \(file) cannot be written.")
        }
    }
}
