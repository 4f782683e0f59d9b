import PluginABI
import PluginHost

extension HostChange {
    /// The name of the event, and what it is about.
    var event: (name: String, data: Value) {
        switch self {
        case .added(let module): ("added", module.event)
        case .started(let module): ("started", module.event)
        case .rested(let module): ("rested", module.event)
        case .replaced(let module, let before):
            ("replaced", module.event.adding("previousVersion", .string(before.version)))
        case .crashed(let generation, _): ("crashed", generation.event)
        case .restarted(let module): ("restarted", module.event)
        case .removed(let generation, _): ("removed", generation.event)
        case .failed(let module, _): ("failed", module.event)
        case .starting(let module): ("starting", module.event)
        case .waiting(let module): ("waiting", module.event)
        case .superseded(let module): ("superseded", module.event)
        case .drainOverdue(let generation): ("drainOverdue", generation.event)
        case .retired(let generation): ("retired", generation.event)
        case .routesChanged(_, let count): ("routesChanged", ["routes": .int(count)])
        case .servicesChanged(_, let count): ("servicesChanged", ["services": .int(count)])
        case .configurationChanged(let modules):
            ("configurationChanged", ["modules": .list(modules.map(Value.string))])
        case .problem(let error): ("problem", ["code": .string(error.code.rawValue)])
        case .missed(let count): ("missed", ["count": .int(count)])
        }
    }
}

// Without texts, which can contain the paths of files.

extension ModuleStatus {
    fileprivate var event: Value {
        var entries: [String: Value] = ["state": .string(state.rawValue)]
        if let name { entries["module"] = .string(name) }
        if let version { entries["version"] = .string(version) }
        if let generation { entries["generation"] = .int(generation) }
        if let error { entries["code"] = .string(error.code.rawValue) }
        return .map(entries)
    }
}

extension GenerationStatus {
    fileprivate var event: Value {
        [
            "module": .string(name), "version": .string(version), "generation": .int(number),
            "state": .string(state.rawValue),
        ]
    }
}

extension Value {
    func adding(_ key: String, _ value: Value) -> Value {
        var entries = map ?? [:]
        entries[key] = value
        return .map(entries)
    }
}
