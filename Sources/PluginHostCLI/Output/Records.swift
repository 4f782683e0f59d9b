internal import FoundationEssentials
internal import PluginABI
internal import PluginHost

// The JSON records of modules, changes and errors, for `--json` and the control socket.

extension Value {
    /// Returns a text of a record; an empty one if there is none.
    func text(_ key: String) -> String { self[key]?.string ?? "" }

    /// Returns a number of a record; 0 if there is none.
    func number(_ key: String) -> Int { self[key]?.int ?? 0 }

    func list(_ key: String) -> [Value] { self[key]?.list ?? [] }

    func texts(_ key: String) -> [String] { list(key).compactMap(\.string) }

    /// Whether a module in the list of a host serves, or is registered and starts when it is called.
    var isServedOrRegistered: Bool { ["active", "registered"].contains(text("state")) }

    /// Makes a map of those entries that are not `nil`.
    static func entries(_ entries: [String: Value?]) -> Value { .map(entries.compactMapValues(\.self)) }

    /// Makes a string; null if there is no text.
    static func text(_ text: String?) -> Value { text.map(Value.string) ?? .null }

    static func texts(_ texts: [String]) -> Value { .list(texts.map(Value.string)) }

    static func time(_ time: Date) -> Value { .string(time.ISO8601Format()) }

    /// Makes a number of seconds; null if there is no duration.
    static func seconds(_ duration: Duration?) -> Value { duration.map { .double($0 / .seconds(1)) } ?? .null }

    /// A result as people see it: strings as they are, bytes as base64, everything else as JSON.
    var readable: String {
        switch self {
        case .string(let text): text
        case .bytes(let bytes): bytes.base64
        default: json
        }
    }
}

extension PluginError {
    /// The error on one line, for people.
    var line: String {
        let text = code == .usage ? message : "\(message) (\(code))"
        return (source.map { "\($0): \(text)" } ?? text).printable
    }
}

extension ModuleStatus {
    var record: Value {
        .entries([
            "name": .text(name), "version": .text(version), "state": .string(state.rawValue), "file": .string(file),
            "targets": .texts(targets), "since": .time(since), "generation": generation.map(Value.int),
            "process": process.map { .int(Int($0)) }, "residentBytes": usage?.memory, "processorTime": usage?.time,
            "restarts": restarts == 0 ? nil : .int(restarts), "error": error?.record, "note": note.map(Value.string),
            "problems": problems.isEmpty ? nil : .list(problems.map(\.record)),
        ])
    }

    /// Returns the record with the interceptors that the module offers, and the status of those that are active.
    func record(with active: [InterceptorStatus]) -> Value {
        guard case .map(var entries) = record, !interceptors.isEmpty else { return record }
        entries["interceptors"] = .list(
            interceptors.map { name in
                let used = state == .active ? active.filter { $0.module == self.name && $0.name == name } : []
                return [
                    "name": .string(name), "scopes": .texts(used.map(\.scope.description)),
                    "overruns": .int(used.reduce(0) { $0 + $1.overruns }),
                    "lastOverrun": .text(used.compactMap(\.lastOverrun).last),
                    "overdue": .texts(used.flatMap(\.overdueCalls)),
                ]
            })
        return .map(entries)
    }
}

extension ProcessUsage {
    fileprivate var memory: Value { .int(residentBytes) }
    fileprivate var time: Value { .seconds(processorTime) }
}

extension GenerationStatus {
    var record: Value {
        .entries([
            "generation": .int(number), "name": .string(name), "version": .string(version), "file": .string(file),
            "state": .string(state.rawValue), "created": .time(created), "since": .time(since),
            "reason": .string(reason), "objects": .int(objects), "mappedBytes": .int(mappedBytes),
            "process": process.map { .int(Int($0)) }, "residentBytes": usage?.memory, "processorTime": usage?.time,
            "crash": crash.map(Value.string), "lastWords": lastWords.isEmpty ? nil : .texts(lastWords),
            "missingProtections": missingProtections.isEmpty ? nil : .texts(missingProtections),
            "calls": .list(
                calls.map { call in
                    [
                        "action": .string(call.action), "caller": .text(call.caller),
                        "callingModule": .text(call.callingModule), "since": .time(call.since),
                    ]
                }),
        ])
    }
}

extension GenerationStatus {
    /// Returns the record of its process; `nil` if it has none.
    func processRecord(restarts: Int) -> Value? {
        process.map { process in
            .entries([
                "name": .string(name), "generation": .int(number), "process": .int(Int(process)),
                "residentBytes": usage?.memory, "processorTime": usage?.time, "restarts": .int(restarts),
            ])
        }
    }
}

extension HostChange {
    var record: Value {
        switch self {
        case .added(let module): ["event": "added", "module": module.record]
        case .replaced(let module, let before):
            ["event": "replaced", "module": module.record, "previous": before.record]
        case .crashed(let generation, let reason):
            ["event": "crashed", "generation": generation.record, "reason": .string(reason)]
        case .started(let module): ["event": "started", "module": module.record]
        case .rested(let module): ["event": "rested", "module": module.record]
        case .restarted(let module): ["event": "restarted", "module": module.record]
        case .removed(let generation, let reason):
            ["event": "removed", "generation": generation.record, "reason": .string(reason)]
        case .failed(let module, let other):
            ["event": "failed", "module": module.record, "goingOn": .text(other)]
        case .starting(let module): ["event": "starting", "module": module.record]
        case .waiting(let module): ["event": "waiting", "module": module.record]
        case .superseded(let module): ["event": "superseded", "module": module.record]
        case .drainOverdue(let generation): ["event": "drainOverdue", "generation": generation.record]
        case .retired(let generation): ["event": "retired", "generation": generation.record]
        case .routesChanged(let file, let count):
            ["event": "routesChanged", "file": .string(file), "routes": .int(count)]
        case .servicesChanged(let file, let count):
            ["event": "servicesChanged", "file": .string(file), "services": .int(count)]
        case .configurationChanged(let modules): ["event": "configurationChanged", "modules": .texts(modules)]
        case .problem(let error): ["event": "problem", "error": error.record]
        case .missed(let count): ["event": "missed", "changes": .int(count)]
        }
    }
}

extension PlannedChange {
    func record(isDryRun: Bool) -> Value {
        [
            "module": .string(module), "dryRun": .bool(isDryRun), "moved": .texts(moved), "restored": .text(restored),
            "stopping": .list(
                stopping.map { stop in
                    ["name": .string(stop.name), "version": .string(stop.version), "reason": .string(stop.reason)]
                }),
            "starting": .list(
                starting.map { start in
                    [
                        "name": .string(start.name), "version": .string(start.version), "file": .string(start.file),
                        "previous": .text(start.previous),
                    ]
                }),
            "steps": .texts(description.split(separator: "\n").map(String.init)),
        ]
    }
}

extension KeptModule {
    var record: Value {
        [
            "name": .string(name), "version": .string(version), "file": .string(file), "kept": .time(kept),
            "bytes": .int(bytes), "serving": .bool(isServing),
        ]
    }
}

extension ActionStatistics {
    var record: Value {
        [
            "module": .string(module), "action": .string(action), "calls": .int(calls), "errors": .int(errors),
            "measured": .int(measured), "median": .seconds(median), "percentile99": .seconds(percentile99),
            "maximum": .seconds(maximum),
        ]
    }
}

extension DeclaredAction {
    var record: Value {
        [
            "name": .string(name), "remote": .bool(isRemote),
            "parameters": .list(
                parameters.map { parameter in
                    [
                        "name": .string(parameter.name), "type": .string(parameter.kind.rawValue),
                        "required": .bool(parameter.isRequired),
                    ]
                }),
        ]
    }
}

extension ServiceInfo {
    var record: Value {
        .entries([
            "name": .string(name), "version": .string(version), "module": .string(module), "target": .string(target),
            "priority": .int(priority), "singleton": .bool(isSingleton), "summary": .string(summary),
            "file": file.map(Value.string),
        ])
    }
}

extension RouteStatus {
    var record: Value {
        .entries([
            "pattern": .string(pattern), "action": .string(action), "owner": .string(owner),
            "method": method.map { .string($0.rawValue) },
            "summary": .string(summary), "defaults": Value.map(defaults),
            "groups": groups.isEmpty
                ? nil : .map(Dictionary(uniqueKeysWithValues: groups.map { (String($0), .string($1)) })),
            "overlaps": .texts(overlaps),
            "overlapsComplete": .bool(overlapsAreComplete), "name": name.map(Value.string),
            "problem": problem?.record,
            "transition": transition == .none ? nil : .string(transition.rawValue),
        ])
    }
}

extension URLExplanation {
    var record: Value {
        .entries([
            "url": .string(url), "action": action.map(Value.string), "fallback": fallback.map(Value.string),
            "module": module.map(Value.string), "route": route.map(Value.string), "parameters": .map(parameters),
            "methods": methods.isEmpty || methods == RouteMethod.allCases ? nil : .texts(methods.map(\.rawValue)),
            "demands": .texts(demands), "error": error?.record, "othersComplete": .bool(othersAreComplete),
            "others": .list(
                others.map { other in
                    [
                        "pattern": .string(other.pattern), "action": .string(other.action),
                        "owner": .string(other.owner), "reason": .string(other.reason),
                    ]
                }),
        ])
    }
}

extension HostProfile {
    var record: Value {
        let entries = entries.map { entry -> Value in
            [
                "phase": .string(entry.phase.rawValue), "name": .string(entry.name), "module": .text(entry.module),
                "start": .seconds(entry.start), "duration": .seconds(entry.duration),
            ]
        }
        return ["event": "profile", "entries": .list(entries), "dropped": .int(dropped)]
    }
}

extension LogEntry {
    /// The entry as a record for programs, with the current time.
    var record: Value {
        [
            "time": .string(Date.now.formatted(Date.ISO8601FormatStyle(includingFractionalSeconds: true))),
            "level": .string("\(level)"), "module": .text(module), "action": .text(call),
            "call": callNumber.map { .string(String($0)) } ?? .null, "message": .string(message),
        ]
    }
}
