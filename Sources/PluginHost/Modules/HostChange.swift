public import PluginABI

/// A change of a host's modules, routes, services or configuration.
public enum HostChange: Sendable, CustomStringConvertible {
    /// A module was added and can be called. If its state is ``ModuleStatus/State/registered``, it starts when it is
    /// first needed.
    case added(ModuleStatus)
    /// A registered module was started, because it was needed.
    case started(ModuleStatus)
    /// A module was put to rest, because it was idle for ``Isolation/restAfter``: it is registered, and its last
    /// generation drains.
    case rested(ModuleStatus)
    /// A module has a new generation, and the previous one drains; or the file of a registered module has new content.
    case replaced(ModuleStatus, GenerationStatus)
    /// The process of an isolated module has ended by itself, or was ended because it hung. The text is the reason
    /// with the last words of the process (see ``GenerationStatus/lastWords``), and what happens next.
    case crashed(GenerationStatus, String)
    /// An isolated module was started again from the same file.
    case restarted(ModuleStatus)
    /// A module was removed and can no longer be called. The text is the reason. Its last generation drains,
    /// if it has started.
    case removed(GenerationStatus, String)
    /// A file could not be loaded, or its module could not be started, for the reason in the status. It is tried again
    /// when the file changes. `goingOn` names the module version that continues to serve instead.
    case failed(ModuleStatus, goingOn: String? = nil)
    /// A hook of a module that is being started has not returned within ``HostConfiguration/hookPatience``, or the
    /// module requires such a module. The other modules start without it; it is served when the hook returns.
    case starting(ModuleStatus)
    /// A module waits because of an unmet requirement, which the status names.
    case waiting(ModuleStatus)
    /// Another file of the same module serves instead of this one.
    case superseded(ModuleStatus)
    /// A generation that was replaced or removed is still used after ``HostConfiguration/drainTimeout``.
    case drainOverdue(GenerationStatus)
    /// A generation was torn down.
    case retired(GenerationStatus)
    /// A route file, given by its path, was read and declares this number of routes; 0 if it was deleted.
    /// ``PluginHost/routes`` lists those in effect; ``PluginHost/problems`` says why others are not.
    case routesChanged(String, Int)
    /// A service file, given by its path, was read and declares this number of services; 0 if it was deleted.
    /// ``PluginHost/problems`` says why some are not in effect.
    case servicesChanged(String, Int)
    /// The configuration of these modules was changed by ``PluginHost/updateConfiguration(_:)``.
    case configurationChanged([String])
    /// A folder cannot be read or watched, or the routes or services of a file are not accepted.
    case problem(PluginError)
    /// Changes were dropped, because too many had not been read. Carries their number; see ``PluginHost/changes``.
    case missed(Int)

    public var description: String {
        switch self {
        case .added(let module): "added \(module.title) from \(module.file)"
        case .started(let module): "started \(module.title) from \(module.file)"
        case .rested(let module): "put to rest \(module.title) from \(module.file)"
        case .replaced(let module, let before):
            "replaced \(before.name) \(before.version) with \(module.version ?? "") from \(module.file)"
                + (before.hasHandedOver || before.state == .registered ? "" : ", no state handed over")
        case .crashed(let generation, let reason): "crashed \(generation.title): \(reason)"
        case .restarted(let module): "restarted \(module.title) from \(module.file)"
        case .removed(let generation, let reason): "removed \(generation.title): \(reason)"
        case .failed(let module, let other):
            "\(module.state) \(module.title): \(module.error?.message ?? "")"
                + (other.map { " \($0) continues to serve." } ?? "")
        case .starting(let module): "starting \(module.title): \(module.error?.message ?? "")"
        case .waiting(let module): "waiting \(module.title): \(module.error?.message ?? "")"
        case .superseded(let module): "superseded \(module.title) of \(module.file): \(module.note ?? "")"
        case .drainOverdue(let generation): "still draining \(generation.title): \(generation.holds)"
        case .retired(let generation): "retired \(generation.title)"
        case .routesChanged(let file, let count): "\(count) \(count == 1 ? "route" : "routes") in \(file)"
        case .servicesChanged(let file, let count): "\(count) \(count == 1 ? "service" : "services") in \(file)"
        case .configurationChanged(let modules): "configuration changed for \(modules.joined(separator: ", "))"
        case .problem(let error): error.message
        case .missed(let count): "\(count) \(count == 1 ? "change" : "changes") dropped: not read in time"
        }
    }
}
