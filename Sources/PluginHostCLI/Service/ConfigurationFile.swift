internal import Glibc
internal import PluginABI
import PluginFile
internal import PluginHost
internal import Synchronization

/// The file of `--config`: a JSON object with the configuration of each module by its name, the list `interceptors`
/// with the active interceptors, and entries that are read only at the start: the number `maximumURLLength`, the list
/// `isolation` with the rules for isolated modules, and the deadlines (``Deadline``), in seconds.
struct ConfigurationFile: Sendable {
    let path: String

    struct Contents: Sendable {
        var modules: [String: Value]
        var interceptors: [InterceptorRule] = []
        var isolation: [IsolationRule] = []
        /// The number of bytes; `nil` if the file does not state it.
        var maximumURLLength: Int?
        var deadlines: [(Deadline, [Duration])] = []

        /// The names of modules for which the file has an entry or a rule.
        var moduleNames: Set<String> {
            Set(modules.keys).union(isolation.map(\.module)).union(interceptors.map(\.module)).subtracting(["*"])
        }
    }

    /// The entries that are not those of a module.
    static let ownEntries =
        ["interceptors", "isolation", "maximumURLLength"] + Deadline.entries.map(\.name)

    /// The maximum size of the file, in bytes.
    static let sizeLimit = 16 << 20
    /// How long to wait for the writer of a pipe to write more, in milliseconds.
    private static let pipePatience: CInt = 5000

    /// - Throws: `fileNotFound`, `unreadable`, `invalidConfiguration`.
    func read() throws(PluginError) -> Contents {
        let value = try Value(
            jsonFile: try bytes(), code: .invalidConfiguration, what: "The configuration \(path)")
        guard let modules = value.map else {
            throw PluginError(
                .invalidConfiguration,
                "The configuration \(path) must be an object with an entry for each module, not a \(value.kind).")
        }
        // A module may have the name of one of the file's own entries: the configuration of a module is a map.
        var contents = Contents(modules: modules)
        contents.deadlines = try Deadline.take(from: &contents.modules, of: path)
        if let length = modules["maximumURLLength"]?.int {
            contents.modules["maximumURLLength"] = nil
            contents.maximumURLLength = length
        }
        if let rules = modules["isolation"]?.list {
            contents.modules["isolation"] = nil
            contents.isolation = try rules.map { (rule) throws(PluginError) in
                try named { () throws(PluginError) in try IsolationRule(rule) }
            }
        }
        guard let interceptors = modules["interceptors"]?.list else { return contents }
        contents.modules["interceptors"] = nil
        contents.interceptors = try interceptors.map { (rule) throws(PluginError) in
            try named { () throws(PluginError) in try InterceptorRule(rule) }
        }
        return contents
    }

    /// Adds the path of the file to an error.
    private func named<Result>(_ body: () throws(PluginError) -> Result) throws(PluginError) -> Result {
        do throws(PluginError) { return try body() } catch {
            throw PluginError(error.code, "The configuration \(path) is not valid. \(error.message)")
        }
    }

    /// Returns what to say about a name in the file that no module has.
    ///
    /// - Parameter known: The names of the modules that exist.
    func warning(_ name: String, known: [String]) -> String {
        "The configuration \(path) names the module “\(name.shortened)”, but there is no such module."
            + didYouMean(name, known + Self.ownEntries)
    }

    /// Reads the file. It may be a pipe, whose size cannot be known in advance.
    private func bytes() throws(PluginError) -> [UInt8] {
        // Non-blocking: opening a pipe that has no writer would block.
        let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
        guard descriptor >= 0 else { throw unreadable(errno) }
        defer { close(descriptor) }
        var bytes: [UInt8] = []
        while case let count = readMore(descriptor, into: &bytes), count != 0 {
            if count < 0, errno == EAGAIN {
                var pipe = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
                guard poll(&pipe, 1, Self.pipePatience) > 0 else { throw unreadable(ETIMEDOUT) }
                continue
            }
            guard count > 0 else { throw unreadable(errno) }
            guard bytes.count <= Self.sizeLimit else {
                throw PluginError(
                    .invalidConfiguration,
                    "The configuration \(path) is too long: at most \(Self.sizeLimit) bytes are accepted. For larger data, "
                        + "pass the path of a file to the module.")
            }
        }
        return bytes
    }

    private func unreadable(_ code: CInt) -> PluginError {
        PluginError(
            [ENOENT, ENOTDIR, ENAMETOOLONG].contains(code) ? .fileNotFound : .unreadable,
            "The configuration \(path) cannot be read: \(String(cString: strerror(code))).")
    }

    /// The identity of the file, which changes whenever the file is replaced or written; `nil` if there is no file.
    fileprivate var identity: FileIdentity? { fileStatus(path).map(FileIdentity.init) }
}

/// Checks the configuration file four times a second, and passes changes to the host. If the file cannot be read,
/// nothing changes, and the reason is logged.
///
/// `@unchecked Sendable`: all mutable properties except `isStopped` are used only on `queue`.
final class ConfigurationWatcher: @unchecked Sendable {
    private let file: ConfigurationFile
    private let host: PluginHost
    private let log: @Sendable (LogEntry) -> Void
    private let queue = SerialThread("host.config")
    private let isStopped = Atomic(false)
    /// The identity of the file when it was last read.
    private var taken: FileIdentity?
    /// The identity of the file when it was last checked. The file is read when it has stopped changing.
    private var seen: FileIdentity?
    /// The names that no module has, and that the log has mentioned.
    private var unknownNames: Set<String> = []

    init(_ file: ConfigurationFile, _ host: PluginHost, log: @escaping @Sendable (LogEntry) -> Void) {
        (self.file, self.host, self.log) = (file, host, log)
        queue.async { [weak self] in self?.poll() }
    }

    /// Stops checking, without waiting for a running check: a subscriber to `configuration.changed` may hang.
    func stop() { isStopped.store(true, ordering: .relaxed) }

    private func poll() {
        guard !isStopped.load(ordering: .relaxed) else { return }
        look()
        queue.async(after: .milliseconds(250)) { [weak self] in self?.poll() }
    }

    private func look() {
        let present = file.identity
        defer { seen = present }
        guard present == seen, present != taken else { return }
        read(present)
    }

    /// Reads the file now, even if it seems to be the same, and waits until the host has the configuration.
    func readAgain() { queue.sync { read(file.identity) } }

    private func read(_ present: FileIdentity?) {
        taken = present
        do throws(PluginError) {
            let contents = try file.read()
            try host.updateInterceptors(contents.interceptors)
            host.updateConfiguration(contents.modules)
            warn(contents.moduleNames)
        } catch {
            log(LogEntry(level: .error, message: "\(error.line) The previous configuration stays in effect."))
        }
    }

    /// Warns about each name that no module has, once until a module has it.
    private func warn(_ names: Set<String>) {
        let known = host.modules.compactMap(\.name)
        let unknown = names.subtracting(known)
        for name in unknown.subtracting(unknownNames).sorted() {
            log(LogEntry(level: .warning, message: file.warning(name, known: known)))
        }
        unknownNames = unknown
    }
}
