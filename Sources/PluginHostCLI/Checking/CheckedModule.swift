internal import FoundationEssentials
internal import Glibc
internal import PluginABI
internal import PluginFile
internal import PluginHost
internal import Synchronization

/// A module with the modules that it requires, in a host of its own in the child process of a check.
struct CheckedModule: Sendable {
    let manifest: CheckedManifest
    /// The check, with its settings.
    let check: CheckChild
    /// The check's own folder, which the parent process removes.
    let folder: String

    private var files: [String] { check.files }

    /// How long an asynchronous call may take.
    var callTimeout: Duration { check.step.callTimeout(of: .seconds(Int(check.seconds))) }

    /// The entries that the host has written to its log.
    final class Log: Sendable {
        private let entries = Mutex<[LogEntry]>([])

        /// The addresses of the code that ran when a process crashed, and whether they are complete.
        private static let crash = Mutex<(addresses: [CodeAddress], isComplete: Bool)>(([], false))

        func add(_ entry: LogEntry) {
            entries.withLock { $0.append(entry) }
            if let address = CodeAddress(line: entry.message) { Self.crash.withLock { $0.addresses.append(address) } }
            if entry.message == "addresses end" { Self.crash.withLock { $0.isComplete = true } }
        }

        /// The number of log entries about replies to calls that were over, or that belonged to another module.
        var staleReplies: Int { entries.withLock { $0.count(where: \.isAboutStaleReply) } }

        /// The last log entry about such a reply.
        var lastStaleReply: String? { entries.withLock { $0.last(where: \.isAboutStaleReply)?.message } }

        /// Returns the addresses of the code of the isolated module that ran when its process crashed, the innermost
        /// first. The output of the process reaches the log a little after its end is known.
        ///
        /// - Parameter crash: How the process ended; only one that was ended by a signal has addresses.
        static func addresses(of crash: String?) -> [CodeAddress] {
            guard crash?.contains("ended by signal") == true else { return [] }
            for _ in 0..<100 where !Self.crash.withLock(\.isComplete) { usleep(5000) }
            return Self.crash.withLock(\.addresses)
        }

        /// The log entry about an object of a type that the module does not declare.
        var undeclaredType: String? {
            entries.withLock { $0.first { $0.message.contains("makes an object of the type") }?.message }
        }
    }

    /// Starts a host.
    ///
    /// - Parameter shutdownTimeout: How long the host waits for running calls when it is shut down.
    /// - Throws: The reason why the module is not active.
    func start(log: Log, shutdownTimeout: Duration = .milliseconds(200)) throws(PluginError) -> PluginHost {
        var configuration = PluginHost.Configuration(
            folders: Array(Set(files.map { $0.parentFolder })).sorted())
        let paths = Set(files)
        configuration.takesFile = { paths.contains($0) }
        configuration.trustsEveryone = check.trustsEveryone
        configuration.watches = check.step == .replacement
        configuration.environment = "check"
        configuration.asyncTimeout = callTimeout
        configuration.shutdownTimeout = shutdownTimeout
        configuration.stagingFolder = folder + "/staging"
        configuration.stateFolder = folder + "/state"
        configuration.log = { log.add($0) }
        // The deadline of the step is that of its calls, too, as in one process.
        if check.isolates { configuration.isolation.callTimeout = .seconds(Int(check.seconds) + 60) }
        try check.configuration.apply(to: &configuration, isolates: check.isolates)
        // The check needs the module, however long its hooks take.
        configuration.hookPatience = configuration.hookTimeout
        if check.isolates {
            configuration.isolation.modules = .all
            configuration.isolation.restartPauses = []
            configuration.isolation.reportsAddresses = true
        }
        for path in [folder + "/staging", folder + "/state"] { mkdir(path, 0o700) }
        let host = PluginHost(configuration)
        try host.start()
        for file in files.dropFirst() {
            guard let error = host.modules.first(where: { $0.file == file })?.error else { continue }
            host.shutdown()
            throw PluginError(error.code, "The module of '--with \(file)' does not start: \(error.message)")
        }
        guard let status = host.modules.first(where: { $0.file == files[0] }) else {
            throw host.problems.first
                ?? PluginError(
                    .unreadable, "\(files[0]) is ignored: a host loads only files named '*.so' that are not hidden.")
        }
        guard status.state == .active else {
            host.shutdown()
            throw advised(
                status.error ?? PluginError(.activationFailed, "It is \(status.state). \(status.note ?? "")"), status)
        }
        return host
    }

    /// Returns the error of a module that is not active, with advice for a check.
    private func advised(_ error: PluginError, _ status: ModuleStatus) -> PluginError {
        let advice =
            switch (error.code, check.isolates) {
            case (.permissionMissing, true):
                " To check it with this rule, pass a file that contains {\"isolation\": [RULE]} with '--config'."
            case (.permissionMissing, false): " To check it, pass '--isolate'."
            default: manifest.requires.isEmpty || status.state != .waiting ? "" : " Pass its file with '--with'."
            }
        return PluginError(error.code, error.message + advice)
    }

    /// If the isolated module has crashed, reports the crash and ends this process.
    func endIfCrashed(_ host: PluginHost) {
        guard let generation = host.generations.first(where: { $0.name == manifest.name && $0.crash != nil }) else {
            return
        }
        let words = generation.lastWords.map { "“\($0)”" }.joined(separator: ", ")
        let report = (generation.crash ?? "") + (words.isEmpty ? "" : " Its last words: \(words).")
        let addresses = Log.addresses(of: generation.crash).map(\.record)
        ChildReport.end(with: ["crash": .string(report), "stack": .list(addresses)])
    }

    /// Returns the number of the module's objects that have holders.
    func objects(in host: PluginHost) -> Int {
        host.generations.filter { $0.name == manifest.name }.reduce(0) { $0 + $1.objects }
    }

    /// Returns the held objects of the module and their holders, in words: `2 × Cursor, held by Bookmarks`.
    func heldObjects(in host: PluginHost) -> String {
        let held = host.heldObjects.filter { $0.module == manifest.name }
        return held.isEmpty ? "" : ": " + held.prefix(5).map(\.description).joined(separator: "; ")
    }
}
