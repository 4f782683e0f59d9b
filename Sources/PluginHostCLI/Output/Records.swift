internal import FoundationEssentials
internal import PluginABI
internal import PluginHost

// What `--json` and the control socket say about modules, changes and errors.

extension PluginError {
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
            "state": .string(state.rawValue),
            "file": .string(file),
            "targets": .list(targets.map { .string($0) }),
            "since": .string(since.ISO8601Format()),
        ]
        if let generation { entries["generation"] = .int(generation) }
        if let error { entries["error"] = error.record }
        if let note { entries["note"] = .string(note) }
        return .map(entries)
    }
}

extension GenerationStatus {
    var record: Value {
        [
            "generation": .int(number), "name": .string(name), "version": .string(version), "file": .string(file),
            "state": .string(state.rawValue), "created": .string(created.ISO8601Format()),
            "since": .string(since.ISO8601Format()), "reason": .string(reason), "objects": .int(objects),
            "mappedBytes": .int(mappedBytes),
            "calls": .list(
                calls.map { call in
                    [
                        "action": .string(call.action), "caller": call.caller.map { .string($0) } ?? .null,
                        "callingModule": call.callingModule.map { .string($0) } ?? .null,
                        "since": .string(call.since.ISO8601Format()),
                    ]
                }),
        ]
    }
}

extension ModuleStatus {
    /// With the interceptors that it offers, and what those that take effect have done.
    func record(with active: [InterceptorStatus]) -> Value {
        guard case .map(var entries) = record, !interceptors.isEmpty else { return record }
        entries["interceptors"] = .list(
            interceptors.map { name in
                let used = state == .active ? active.filter { $0.module == self.name && $0.name == name } : []
                return [
                    "name": .string(name), "scopes": .list(used.map { .string($0.scope.description) }),
                    "overruns": .int(used.reduce(0) { $0 + $1.overruns }),
                    "lastOverrun": used.compactMap(\.lastOverrun).last.map(Value.string) ?? .null,
                    "overdue": .list(used.flatMap(\.overdueCalls).map(Value.string)),
                ]
            })
        return .map(entries)
    }
}

extension HostChange {
    var record: Value {
        switch self {
        case .added(let module): ["event": "added", "module": module.record]
        case .replaced(let module, let before):
            ["event": "replaced", "module": module.record, "previous": before.record]
        case .removed(let generation, let reason):
            ["event": "removed", "generation": generation.record, "reason": .string(reason)]
        case .failed(let module, let other):
            ["event": "failed", "module": module.record, "goingOn": other.map { .string($0) } ?? .null]
        case .waiting(let module): ["event": "waiting", "module": module.record]
        case .superseded(let module): ["event": "superseded", "module": module.record]
        case .drainOverdue(let generation): ["event": "drainOverdue", "generation": generation.record]
        case .retired(let generation): ["event": "retired", "generation": generation.record]
        case .routesChanged(let file, let count):
            ["event": "routesChanged", "file": .string(file), "routes": .int(count)]
        case .servicesChanged(let file, let count):
            ["event": "servicesChanged", "file": .string(file), "services": .int(count)]
        case .configurationChanged(let modules):
            ["event": "configurationChanged", "modules": .list(modules.map { .string($0) })]
        case .problem(let error): ["event": "problem", "error": error.record]
        }
    }
}

extension PlannedChange {
    func record(isDryRun: Bool) -> Value {
        [
            "module": .string(module), "dryRun": .bool(isDryRun), "moved": .list(moved.map { .string($0) }),
            "restored": restored.map { .string($0) } ?? .null,
            "stopping": .list(
                stopping.map { stop in
                    ["name": .string(stop.name), "version": .string(stop.version), "reason": .string(stop.reason)]
                }),
            "starting": .list(
                starting.map { start in
                    [
                        "name": .string(start.name), "version": .string(start.version), "file": .string(start.file),
                        "previous": start.previous.map { .string($0) } ?? .null,
                    ]
                }),
            "steps": .list(description.split(separator: "\n").map { .string(String($0)) }),
        ]
    }
}

extension KeptModule {
    var record: Value {
        [
            "name": .string(name), "version": .string(version), "file": .string(file),
            "kept": .string(kept.ISO8601Format()), "bytes": .int(bytes), "serving": .bool(isServing),
        ]
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

extension ActionStatistics {
    /// Durations in seconds.
    var record: Value {
        func seconds(_ duration: Duration?) -> Value { duration.map { .double($0 / .seconds(1)) } ?? .null }
        return [
            "module": .string(module), "action": .string(action), "calls": .int(calls), "errors": .int(errors),
            "measured": .int(measured), "median": seconds(median), "percentile99": seconds(percentile99),
            "maximum": seconds(maximum),
        ]
    }
}

extension ServiceInfo {
    var record: Value {
        var entries: [String: Value] = [
            "name": .string(name), "version": .string(version), "module": .string(module), "target": .string(target),
            "priority": .int(priority), "singleton": .bool(isSingleton), "summary": .string(summary),
        ]
        if let file { entries["file"] = .string(file) }
        return .map(entries)
    }
}

extension RouteStatus {
    var record: Value {
        var entries: [String: Value] = [
            "pattern": .string(pattern), "action": .string(action), "owner": .string(owner),
            "summary": .string(summary), "defaults": .map(defaults),
            "overlaps": .list(overlaps.map { .string($0) }), "overlapsComplete": .bool(overlapsAreComplete),
        ]
        if let name { entries["name"] = .string(name) }
        return .map(entries)
    }
}
