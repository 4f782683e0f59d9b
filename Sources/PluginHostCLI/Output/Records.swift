internal import FoundationEssentials
internal import PluginABI
internal import PluginHost

// What `--json` and the control socket say about modules, changes and errors.

extension PluginError {
    /// `code`, `message` and, where a module failed, `source`.
    var record: Value {
        var entries: [String: Value] = ["code": .string(code.rawValue), "message": .string(message)]
        if let source { entries["source"] = .string(source) }
        return .map(entries)
    }

    /// For people, on one line.
    var line: String {
        let text = code == .usage ? message : "\(message) (\(code))"
        return (source.map { "\($0): \(text)" } ?? text).printable
    }
}

extension ModuleStatus {
    var record: Value {
        var entries: [String: Value] = [
            "name": name.map { .string($0) } ?? .null,
            "version": version.map { .string($0) } ?? .null,
            "state": .string(state),
            "file": .string(file),
            "targets": .list(targets.map { .string($0) }),
            "since": .string(since.ISO8601Format()),
        ]
        if let generation { entries["generation"] = .int(generation) }
        if let error { entries["error"] = error.record }
        return .map(entries)
    }
}

extension HostChange {
    var record: Value {
        switch self {
        case .added(let module): ["event": "added", "module": module.record]
        case .failed(let module): ["event": "failed", "module": module.record]
        case .superseded(let module): ["event": "superseded", "module": module.record]
        case .changedOnDisk(let module, let message):
            ["event": "changedOnDisk", "module": module.record, "message": .string(message)]
        case .routesChanged(let file, let count):
            ["event": "routesChanged", "file": .string(file), "routes": .int(count)]
        case .configurationChanged(let modules):
            ["event": "configurationChanged", "modules": .list(modules.map { .string($0) })]
        case .problem(let error): ["event": "problem", "error": error.record]
        }
    }
}

extension Value {
    /// A result as people want to see it: text as it is, everything else as JSON.
    var readable: String {
        switch self {
        case .string(let text): text
        case .bytes(let bytes): bytes.base64
        default: json
        }
    }
}

extension ServiceInfo {
    var record: Value {
        [
            "name": .string(name), "version": .string(version), "module": .string(module), "target": .string(target),
            "priority": .int(priority), "singleton": .bool(isSingleton), "summary": .string(summary),
        ]
    }
}

extension RouteStatus {
    var record: Value {
        var entries: [String: Value] = [
            "pattern": .string(pattern), "action": .string(action), "owner": .string(owner),
            "summary": .string(summary), "defaults": .map(defaults),
            "overlaps": .list(overlaps.map { .string($0) }),
        ]
        if let name { entries["name"] = .string(name) }
        return .map(entries)
    }
}
