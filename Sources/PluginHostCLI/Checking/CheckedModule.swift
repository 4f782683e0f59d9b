internal import Foundation
internal import Glibc
internal import PluginABI
internal import PluginHost
internal import Synchronization

/// A module in a host of its own, with those that it requires, in the child process of a check.
struct CheckedModule: Sendable {
    let manifest: CheckedManifest
    /// What is checked, and how.
    let check: CheckChild
    /// A folder of this check's own, which its parent removes.
    let folder: String

    private var files: [String] { check.files }

    /// How long an asynchronous call may take.
    var callTimeout: Duration { check.step.callTimeout(of: .seconds(Int(check.seconds))) }

    /// What the host has written to its log.
    final class Log: Sendable {
        private let entries = Mutex<[LogEntry]>([])

        func add(_ entry: LogEntry) { entries.withLock { $0.append(entry) } }

        /// What has gone wrong, said of calls that were answered twice, or by another module.
        var staleReplies: Int {
            entries.withLock { $0.count { $0.message.contains("replied to a call that is over") } }
        }
    }

    /// Starts a host.
    ///
    /// - Parameter shutdownTimeout: How long the host waits at its end for calls that go on.
    /// - Throws: Why the module is not active.
    func start(log: Log, shutdownTimeout: Duration = .milliseconds(200)) throws(PluginError) -> PluginHost {
        var configuration = PluginHost.Configuration(
            folders: Array(Set(files.map { ($0 as NSString).deletingLastPathComponent })).sorted())
        let paths = Set(files)
        configuration.takesFile = { paths.contains($0) }
        configuration.trustsEveryone = check.trustsEveryone
        configuration.watches = false
        configuration.environment = "check"
        configuration.asyncTimeout = callTimeout
        configuration.shutdownTimeout = shutdownTimeout
        configuration.stagingFolder = folder + "/staging"
        configuration.stateFolder = folder + "/state"
        configuration.log = { log.add($0) }
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
                ?? PluginError(.unreadable, "\(files[0]) is not looked at: a host takes '*.so', and nothing hidden.")
        }
        guard status.state == .active else {
            host.shutdown()
            let error = status.error ?? PluginError(.activationFailed, "It is \(status.state). \(status.note ?? "")")
            throw manifest.requires.isEmpty || status.state != .waiting
                ? error : PluginError(error.code, error.message + " Give its file with '--with'.")
        }
        return host
    }

    /// How many objects of the module somebody holds.
    func objects(in host: PluginHost) -> Int {
        host.generations.filter { $0.name == manifest.name }.reduce(0) { $0 + $1.objects }
    }
}
