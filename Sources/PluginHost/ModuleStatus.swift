public import Foundation
public import PluginABI

/// What the host knows of one file in a plugins folder.
public struct ModuleStatus: Sendable {
    /// The module's name; nil while the file could not be read as a module.
    public var name: String?
    /// The module's version; nil as long as there is no name.
    public var version: String?
    /// `active`, `loaded` (for the moment before it is), `superseded` (another file of the same module serves), `waiting`
    /// (the file is being written, or what the module requires is not there), `failed`, `quarantined`, `library` (no
    /// module, but what one finds beside itself), or `retired` (the host was shut down).
    public var state: String
    /// The path of the file in the plugins folder; `(linked) NAME` for a module that is linked into the program, and
    /// `(program)` for one that the program has registered.
    public var file: String
    /// The number of the generation that serves, counted over all modules of the process; nil when none does.
    public var generation: Int?
    /// The names of the module's targets.
    public var targets: [String] = []
    /// The names of the interceptors that the module offers. ``PluginHost/interceptors`` says which take effect.
    public var interceptors: [String] = []
    /// Why it is not active.
    public var error: PluginError?
    /// What else there is to know, in words.
    public var note: String?
    /// Since when it is in this state.
    public var since: Date

    init(state: String, file: String, since: Date) {
        self.state = state
        self.file = file
        self.since = since
    }

    /// `ModuleA 1.0.0`, or the file while there is no name.
    var title: String { name.map { "\($0) \(version ?? "")" } ?? file }
}

/// Something that happened to the modules of a host.
public enum HostChange: Sendable, CustomStringConvertible {
    /// A module can be called from now on.
    case added(ModuleStatus)
    /// A module has a new generation; the one before drains.
    case replaced(ModuleStatus, GenerationStatus)
    /// A module cannot be called any more, for a reason; its last generation drains.
    case removed(GenerationStatus, String)
    /// A file could not be loaded, or its module not be started, for the reason that the status carries. It is tried
    /// again when it changes. The text names what goes on serving in its place.
    case failed(ModuleStatus, goingOn: String? = nil)
    /// A module waits for something that it requires, which the status names.
    case waiting(ModuleStatus)
    /// Another file of the same module serves instead of this one.
    case superseded(ModuleStatus)
    /// A generation that was replaced or removed is still used after ``PluginHost/Configuration/drainTimeout``.
    case drainOverdue(GenerationStatus)
    /// A generation was torn down.
    case retired(GenerationStatus)
    /// The routes of a route file, given by its path, were taken; how many there are now. Which of them stand, and why
    /// not, ``PluginHost/routes`` and ``PluginHost/problems`` say.
    case routesChanged(String, Int)
    /// The services of a service file, given by its path, were taken; how many there are now. Why some do not stand,
    /// ``PluginHost/problems`` says.
    case servicesChanged(String, Int)
    /// What these modules are told was changed, by ``PluginHost/updateConfiguration(_:)``.
    case configurationChanged([String])
    /// A folder cannot be read or watched, or the routes or services of a file cannot be taken.
    case problem(PluginError)

    public var description: String {
        switch self {
        case .added(let module): "added \(module.title) from \(module.file)"
        case .replaced(let module, let before):
            "replaced \(before.name) \(before.version) by \(module.version ?? "") from \(module.file)"
        case .removed(let generation, let reason): "removed \(generation.title): \(reason)"
        case .failed(let module, let other):
            "\(module.state) \(module.title): \(module.error?.message ?? "")"
                + (other.map { " \($0) goes on." } ?? "")
        case .waiting(let module): "waiting \(module.title): \(module.error?.message ?? "")"
        case .superseded(let module): "superseded \(module.title) of \(module.file): \(module.note ?? "")"
        case .drainOverdue(let generation): "still draining \(generation.title): \(generation.holds)"
        case .retired(let generation): "retired \(generation.title)"
        case .routesChanged(let file, let count): "\(count) \(count == 1 ? "route" : "routes") in \(file)"
        case .servicesChanged(let file, let count): "\(count) \(count == 1 ? "service" : "services") in \(file)"
        case .configurationChanged(let modules): "configuration changed for \(modules.joined(separator: ", "))"
        case .problem(let error): error.message
        }
    }
}

/// A line for the log.
public struct LogEntry: Sendable {
    /// How much it matters.
    public var level: LogLevel
    /// The module that wrote it, or that it is about; nil for the host itself.
    public var module: String?
    /// Target and action of the call that it is about; nil where it is about none that still runs.
    public var call: String?
    /// What there is to say.
    public var message: String

    /// Makes a line.
    public init(level: LogLevel, module: String? = nil, call: String? = nil, message: String) {
        self.level = level
        self.module = module
        self.call = call
        self.message = message
    }
}
