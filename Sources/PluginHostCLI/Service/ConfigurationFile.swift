internal import Glibc
internal import PluginABI
import PluginFile
internal import PluginHost
internal import Synchronization

/// The file of `--config`: a JSON object with the configuration of each module by its name, with the interceptors that
/// take effect as the list `interceptors`, and with the number `maximumURLLength`, which is read at the start.
struct ConfigurationFile: Sendable {
    let path: String

    struct Contents: Sendable {
        var modules: [String: Value]
        var interceptors: [InterceptorRule] = []
        /// In bytes; nil where the file does not say.
        var maximumURLLength: Int?
    }

    /// How long the file may be, in bytes.
    static let sizeLimit = 16 << 20
    /// How long the writer of a pipe may write nothing, in milliseconds.
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
        // Modules may be called like what is not for one: what a module is told is a map.
        var contents = Contents(modules: modules)
        if let length = modules["maximumURLLength"]?.int {
            contents.modules["maximumURLLength"] = nil
            contents.maximumURLLength = length
        }
        guard let interceptors = modules["interceptors"]?.list else { return contents }
        contents.modules["interceptors"] = nil
        contents.interceptors = try interceptors.map { (rule) throws(PluginError) in try InterceptorRule(rule) }
        return contents
    }

    /// What is in the file, of whatever kind it is: a pipe has no size that could be looked at first.
    private func bytes() throws(PluginError) -> [UInt8] {
        // A pipe that nobody has opened for writing would keep a blocking open waiting.
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
                    "The configuration \(path) is too long: at most \(Self.sizeLimit) bytes are accepted. Give modules "
                        + "the path of what is larger.")
            }
        }
        return bytes
    }

    private func unreadable(_ code: CInt) -> PluginError {
        PluginError(
            [ENOENT, ENOTDIR, ENAMETOOLONG].contains(code) ? .fileNotFound : .unreadable,
            "The configuration \(path) cannot be read: \(String(cString: strerror(code))).")
    }

    /// Changes whenever the file is replaced or written; nil where there is none.
    fileprivate var identity: FileIdentity? { fileStatus(path).map(FileIdentity.init) }
}

/// Looks at the configuration four times a second, and gives what is new to the host. What cannot be read changes
/// nothing, and the log says why.
///
/// Everything mutable but `isStopped` is touched on `queue` only, hence `@unchecked Sendable`.
final class ConfigurationWatcher: @unchecked Sendable {
    private let file: ConfigurationFile
    private let host: PluginHost
    private let log: @Sendable (LogEntry) -> Void
    private let queue = SerialThread("host.config")
    private let isStopped = Atomic(false)
    /// What was read last, and what was seen last: a file is read when it has stopped changing.
    private var taken: FileIdentity?
    private var seen: FileIdentity?

    init(_ file: ConfigurationFile, _ host: PluginHost, log: @escaping @Sendable (LogEntry) -> Void) {
        self.file = file
        self.host = host
        self.log = log
        queue.async { [weak self] in self?.lookAgainAndAgain() }
    }

    /// Ends the looking, without waiting for what runs: a subscriber to `configuration.changed` may hang.
    func stop() { isStopped.store(true, ordering: .relaxed) }

    private func lookAgainAndAgain() {
        guard !isStopped.load(ordering: .relaxed) else { return }
        look()
        queue.async(after: .milliseconds(250)) { [weak self] in self?.lookAgainAndAgain() }
    }

    private func look() {
        let present = file.identity
        defer { seen = present }
        guard present == seen, present != taken else { return }
        taken = present
        do throws(PluginError) {
            let contents = try file.read()
            try host.updateInterceptors(contents.interceptors)
            host.updateConfiguration(contents.modules)
        } catch {
            log(LogEntry(level: .error, message: "\(error.line) The configuration in force stays."))
        }
    }
}
