import PluginABI
import PluginFile

/// Modules that are known but do not serve, so that their callers receive the reason.
struct UnavailableModules: Equatable, Sendable {
    /// One unavailable module.
    struct Absence: Equatable, Sendable {
        /// The name and version.
        let module: String
        /// The reason, as a predicate: `was removed: its file is gone`.
        let reason: String

        /// - Parameter what: The thing that the caller asked for.
        func error(_ what: String) -> PluginError {
            PluginError(.moduleUnavailable, "\(what) belongs to \(module), which is not served: \(reason)")
        }
    }

    private var targets: [String: Absence] = [:]
    private var services: [String: Absence] = [:]

    mutating func add(_ outline: ModuleOutline, _ reason: String) {
        let absence = Absence(module: "\(outline.name) \(outline.version)", reason: reason)
        for target in outline.targets { targets[target] = absence }
        for service in outline.services { services[service.name] = absence }
    }

    func ofTarget(_ name: String) -> Absence? { targets[name] }
    func ofService(_ name: String) -> Absence? { services[name] }
}
