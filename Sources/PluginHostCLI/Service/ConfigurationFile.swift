internal import Dispatch
internal import FoundationEssentials
internal import Glibc
internal import PluginABI
internal import PluginHost

/// The file of `--config`: a JSON object with the configuration of each module by its name, and with the interceptors
/// that take effect as the list `interceptors`.
struct ConfigurationFile: Sendable {
    let path: String

    struct Contents: Sendable {
        var modules: [String: Value]
        var interceptors: [InterceptorRule] = []
    }

    /// - Throws: `fileNotFound`, `unreadable`, `invalidConfiguration`.
    func read() throws(PluginError) -> Contents {
        let data: Data
        do { data = try Data(contentsOf: URL(filePath: path)) } catch {
            let code: PluginError.Code = FileManager.default.fileExists(atPath: path) ? .unreadable : .fileNotFound
            throw PluginError(code, "The configuration \(path) cannot be read.")
        }
        guard let text = String(validating: data, as: UTF8.self) else {
            throw PluginError(.invalidConfiguration, "The configuration \(path) is not UTF-8.")
        }
        let value: Value
        do { value = try Value(json: text) } catch {
            throw PluginError(.invalidConfiguration, "The configuration \(path) is no JSON. \(error.message)")
        }
        guard let modules = value.map else {
            throw PluginError(
                .invalidConfiguration,
                "The configuration \(path) must be an object with an entry for each module, not a \(value.kind).")
        }
        // A module may be called like that: what it is told is a map.
        guard let interceptors = modules["interceptors"]?.list else { return Contents(modules: modules) }
        var contents = Contents(modules: modules)
        contents.modules["interceptors"] = nil
        contents.interceptors = try interceptors.map { (rule) throws(PluginError) in try InterceptorRule(rule) }
        return contents
    }

    /// What changes whenever the file is replaced or written; nil where there is none.
    fileprivate var identity: Identity? {
        var status = stat()
        guard stat(path, &status) == 0 else { return nil }
        return Identity(
            device: status.st_dev, inode: status.st_ino, size: status.st_size,
            modified: withUnsafeBytes(of: status.st_mtim, Array.init))
    }

    fileprivate struct Identity: Equatable {
        let device: dev_t
        let inode: ino_t
        let size: off_t
        /// The bytes of the time of the last change.
        let modified: [UInt8]
    }
}

/// Looks at the configuration four times a second, and gives what is new to the host. What cannot be read changes
/// nothing, and the log says why.
///
/// Everything mutable is touched on `queue` only, hence `@unchecked Sendable`.
final class ConfigurationWatcher: @unchecked Sendable {
    private let file: ConfigurationFile
    private let host: PluginHost
    private let log: @Sendable (LogEntry) -> Void
    private let queue = DispatchQueue(label: "pluginhost.configuration")
    private let timer: any DispatchSourceTimer
    /// What was read last, and what was seen last: a file is read when it has stopped changing.
    private var taken: ConfigurationFile.Identity?
    private var seen: ConfigurationFile.Identity?

    init(_ file: ConfigurationFile, _ host: PluginHost, log: @escaping @Sendable (LogEntry) -> Void) {
        self.file = file
        self.host = host
        self.log = log
        timer = DispatchSource.makeTimerSource(queue: queue)
        timer.schedule(deadline: .now(), repeating: .milliseconds(250), leeway: .milliseconds(50))
        timer.setEventHandler { [weak self] in self?.look() }
        timer.activate()
    }

    func stop() { timer.cancel() }

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
