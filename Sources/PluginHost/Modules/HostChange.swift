public import PluginABI
import PluginFile

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
    /// A generation that was replaced or removed is still used after ``HostConfiguration/drainTimeout``.
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
