internal import PluginABI
internal import PluginHost

/// A method of a host that commands call, directly or over the control socket. A method has the name of its command,
/// and returns the JSON that the command prints with `--json`. Only `problems`, `types`, `actions` and `manifest`, which
/// other commands use, have no command of their name.
struct HostMethod: Sendable {
    let name: String
    let parameters: [String]
    /// Whether the method runs code of modules on behalf of a call, so that it takes as long as that code.
    let runsModules: Bool
    /// Whether the method waits for a change, for code of modules, or for the start of the host.
    var waits: Bool { waitsForModules || needsModules }
    /// Whether the method waits for a change, or for code of modules, for as long as that takes.
    var waitsForModules: Bool { runsModules || name == "events" }
    /// Whether the method calls or looks up what modules offer, so that it waits until the host has started.
    var needsModules: Bool {
        ["call", "open", "post", "resolve", "types", "actions", "manifest"].contains(name)
    }
    let answer: @Sendable (LocalHost, MethodParameters) async throws -> Value

    static let named = Dictionary(uniqueKeysWithValues: all.map { ($0.name, $0) })

    /// The parameters that say what a call or an event addresses.
    static let addressParameters = ["target", "service", "version", "object", "action", "event"]

    static let all = [
        HostMethod("list", ["all"]) { service, parameters in
            try parameters.flag("all") ? service.generations : service.modules
        },
        HostMethod("problems") { service, _ in .list(service.host.problems.map(\.record)) },
        HostMethod("routes") { service, _ in .list(service.host.routes.map(\.record)) },
        HostMethod("services") { service, _ in .list(service.host.services.map(\.record)) },
        HostMethod("stats", ["processes"]) { service, parameters in
            let actions = Value.list(service.host.statistics.map(\.record))
            return try parameters.flag("processes") ? ["actions": actions, "processes": service.processes] : actions
        },
        HostMethod(
            "call", ["target", "service", "version", "object", "action", "parameters", "bytes", "timeout"],
            runsModules: true
        ) { service, parameters in
            try await service.objects.keep(service.call(parameters))
        },
        HostMethod("open", ["url", "method", "parameters", "bytes", "local", "timeout"], runsModules: true) {
            service, parameters in
            let result = try await service.host.open(
                parameters.text("url"), method: parameters.method, Parameters(parameters.values),
                origin: parameters.flag("local") ? .local : .remote, timeout: parameters.timeout)
            return service.objects.keep(result)
        },
        HostMethod("resolve", ["url", "method", "parameters", "local"]) { service, parameters in
            try service.host.resolve(
                parameters.text("url"), method: parameters.method, Parameters(parameters.map("parameters")),
                origin: parameters.flag("local") ? .local : .remote
            ).record
        },
        HostMethod("post", ["event", "parameters", "bytes", "sticky", "timeout"], runsModules: true) {
            service, parameters in
            try await service.host.post(
                parameters.text("event"), Parameters(parameters.values), sticky: parameters.flag("sticky"),
                timeout: parameters.timeout
            ).value
        },
        HostMethod("types", addressParameters) { service, parameters in
            guard let types = service.host.declaredTypes(at: try service.address(parameters)) else { return .null }
            return .map(types.mapValues { .string($0.rawValue) })
        },
        HostMethod("actions", ["target", "service"]) { service, parameters in
            let name = try parameters.text(ifGiven: "service")
            let actions =
                try name.map { service.host.declaredActions(ofService: $0) }
                ?? service.host.declaredActions(ofTarget: parameters.text("target"))
            return .list(actions.map(\.record))
        },
        HostMethod("inspect", ["file", "timeout"], runsModules: true) { service, parameters in
            try Inspection(
                file: parameters.text("file"), trustsEveryone: service.trustsEveryone, deadline: parameters.timeout,
                endsSoon: false
            ).run()
        },
        HostMethod("manifest", ["name", "timeout"], runsModules: true) { service, parameters in
            try service.manifest(of: parameters.text("name"), deadline: parameters.timeout)
        },
        HostMethod("remove", ["name", "force", "dryRun"]) { service, parameters in
            let (name, force) = try (parameters.text("name"), parameters.flag("force"))
            let isDryRun = try parameters.flag("dryRun")
            return try service.host.remove(name, force: force, dryRun: isDryRun).record(isDryRun: isDryRun)
        },
        HostMethod("rollback", ["name", "version", "force", "dryRun"]) { service, parameters in
            let (name, version) = try (parameters.text("name"), parameters.text(ifGiven: "version"))
            let (force, isDryRun) = try (parameters.flag("force"), parameters.flag("dryRun"))
            return try service.host.rollback(name, to: version, force: force, dryRun: isDryRun)
                .record(isDryRun: isDryRun)
        },
        HostMethod("restart", ["name"]) { service, parameters in
            let name = try parameters.text("name")
            try service.host.restart(name)
            let process = service.host.modules.first { $0.name == name && $0.state == .active }?.process
            return .entries(["name": .string(name), "process": process.map { .int(Int($0)) }])
        },
        HostMethod("versions", ["name"]) { service, parameters in
            let name = try parameters.text("name")
            // Versions that are left out follow the others, with only their errors.
            let leftOut = service.host.keptVersionsLeftOut(of: name).map { Value.map(["error": $0.record]) }
            return .list(service.host.keptVersions(of: name).map(\.record) + leftOut)
        },
        HostMethod("events", ["after", "timeout"]) { service, parameters in
            try await service.changes.events(
                after: parameters.number(ifGiven: "after"), waitingAtMost: parameters.timeout)
        },
        HostMethod("release", ["object"], runsModules: true) { service, parameters in
            try service.objects.release(parameters.number("object"))
            return .null
        },
    ]

    private init(
        _ name: String, _ parameters: [String] = [], runsModules: Bool = false,
        answer: @escaping @Sendable (LocalHost, MethodParameters) async throws -> Value
    ) {
        (self.name, self.parameters, self.runsModules, self.answer) = (name, parameters, runsModules, answer)
    }
}

extension LocalHost {
    fileprivate var modules: Value {
        let interceptors = host.interceptors
        return .list(host.modules.map { $0.record(with: interceptors) })
    }

    /// Returns the file and the manifest of a module that serves, with the types that its code derives if that code ends
    /// in time; `notes` says what they lack. The code runs in a process of its own.
    fileprivate func manifest(of name: String, deadline: Duration?) throws(PluginError) -> Value {
        let served = try host.servedManifest(of: name)
        var (manifest, notes) = (try Value(json: served.text), Value?.none)
        if let copy = served.copy {
            do throws(PluginError) {
                // The host has accepted the file that it has copied.
                let report = try Inspection(file: copy, trustsEveryone: true, deadline: deadline, endsSoon: false).run()
                (manifest, notes) = (report["manifest"] ?? manifest, report["notes"])
            } catch {
                notes = ["The types are not known. \(error.message)"]
            }
        }
        return .entries(["file": .string(served.file), "manifest": manifest, "notes": notes])
    }

    /// The processes of isolated modules, including those that still drain.
    fileprivate var processes: Value {
        let restarts = Dictionary(host.modules.map { ($0.name, $0.restarts) }) { max($0, $1) }
        return .list(host.generations.compactMap { $0.processRecord(restarts: restarts[$0.name] ?? 0) })
    }

    /// Every generation, including those that drain or were retired, and the memory of all retired generations.
    fileprivate var generations: Value {
        let retired = host.retiredTotal
        return [
            "generations": .list(host.generations.map(\.record)),
            "retired": ["count": .int(retired.count), "mappedBytes": .int(retired.mappedBytes)],
        ]
    }

    /// Calls an action of a target, of a service (in at least a given version), or of an object that a call has
    /// returned.
    fileprivate func call(_ parameters: MethodParameters) async throws -> Value {
        if let object = try parameters.number(ifGiven: "object") {
            let call = try ActionCall(parameters)
            return try await objects.object(object).call(call.action, call.parameters, timeout: call.timeout)
        }
        if let service = try parameters.text(ifGiven: "service") {
            let version = try parameters.text(ifGiven: "version")
            let call = try ActionCall(parameters)
            return try await host.service(service, from: version).call(
                call.action, call.parameters, timeout: call.timeout)
        }
        let target = try parameters.text("target")
        let call = try ActionCall(parameters)
        return try await host.call(target, call.action, call.parameters, timeout: call.timeout)
    }

    /// Reads what a call or an event addresses.
    fileprivate func address(_ parameters: MethodParameters) throws -> CallAddress {
        if let event = try parameters.text(ifGiven: "event") { return .event(event) }
        let action = try parameters.text("action")
        if let object = try parameters.number(ifGiven: "object") {
            return .object(try objects.object(object), action: action)
        }
        if let service = try parameters.text(ifGiven: "service") {
            return .service(service, version: try parameters.text(ifGiven: "version"), action: action)
        }
        return .action(target: try parameters.text("target"), action)
    }

    /// The parameters common to calls of targets, services and objects.
    private struct ActionCall {
        let action: String
        let parameters: Parameters
        let timeout: Duration?

        init(_ parameters: MethodParameters) throws(RPCError) {
            action = try parameters.text("action")
            self.parameters = try Parameters(parameters.values)
            timeout = try parameters.timeout
        }
    }
}
