internal import PluginABI
internal import PluginFile
internal import PluginHost

/// The methods of the control socket. They are named like the commands and give what `--json` prints as `result`.
struct ControlMethods: Sendable {
    static let names = [
        "list", "routes", "services", "stats", "call", "open", "post", "inspect", "remove", "rollback", "versions",
        "events", "release",
    ]

    /// Those that run no code of modules on behalf of a call: they never wait for calls.
    static let hostsOwn: Set = ["list", "routes", "services", "stats", "remove", "rollback", "versions", "events"]

    /// Those of the host's own that wait for nothing.
    static let neverWaiting = hostsOwn.subtracting(["events"])

    let service: any HostService

    func handle(_ method: String, _ parameters: Value?) async throws(RPCError) -> Value {
        do {
            switch method {
            case "list":
                let isAll = try Fields(parameters, known: ["all"]).flag("all")
                return try await isAll ? service.generations() : service.list()
            case "routes":
                _ = try Fields(parameters, known: [])
                return try await service.routes()
            case "services":
                _ = try Fields(parameters, known: [])
                return try await service.services()
            case "stats":
                _ = try Fields(parameters, known: [])
                return try await service.statistics()
            case "call":
                let fields = try Fields(
                    parameters, known: ["target", "service", "version", "object", "action", "parameters", "timeout"])
                if let object = try fields.number("object") {
                    return try await service.callObject(
                        object, fields.text("action"), fields.map("parameters"), timeout: fields.timeout)
                }
                if fields.has("service") {
                    return try await service.callService(
                        fields.text("service"), from: fields.has("version") ? fields.text("version") : nil,
                        fields.text("action"), fields.map("parameters"), timeout: fields.timeout)
                }
                return try await service.call(
                    fields.text("target"), fields.text("action"), fields.map("parameters"), timeout: fields.timeout)
            case "open":
                let fields = try Fields(parameters, known: ["url", "parameters", "local", "timeout"])
                return try await service.open(
                    fields.text("url"), fields.map("parameters"), isLocal: fields.flag("local"),
                    timeout: fields.timeout)
            case "post":
                let fields = try Fields(parameters, known: ["event", "parameters", "sticky", "timeout"])
                return try await service.post(
                    fields.text("event"), fields.map("parameters"), sticky: fields.flag("sticky"),
                    timeout: fields.timeout)
            case "release":
                let fields = try Fields(parameters, known: ["object"])
                guard let object = try fields.number("object") else {
                    throw RPCError.invalidParameters("The param 'object' must be a whole number.")
                }
                try await service.release(object)
                return .null
            case "inspect":
                let fields = try Fields(parameters, known: ["file", "timeout"])
                return try await service.inspect(fields.text("file"), timeout: fields.timeout)
            case "remove":
                let fields = try Fields(parameters, known: ["name", "force", "dryRun"])
                return try await service.remove(
                    fields.text("name"), force: fields.flag("force"), dryRun: fields.flag("dryRun"))
            case "rollback":
                let fields = try Fields(parameters, known: ["name", "version", "force", "dryRun"])
                return try await service.rollback(
                    fields.text("name"), to: fields.has("version") ? fields.text("version") : nil,
                    force: fields.flag("force"), dryRun: fields.flag("dryRun"))
            case "versions":
                return try await service.versions(Fields(parameters, known: ["name"]).text("name"))
            case "events":
                let fields = try Fields(parameters, known: ["after", "timeout"])
                return try await service.events(after: fields.number("after"), timeout: fields.timeout)
            default:
                let close = didYouMean(method, Self.names)
                throw RPCError.unknownMethod("There is no method '\(method.shortened)'.\(close)")
            }
        } catch let error as PluginError {
            throw .host(error)
        } catch let error as RPCError {
            throw error
        } catch {
            throw .host(PluginError(.actionFailed, "\(error)"))
        }
    }
}

/// The named parameters of a request, each checked as it is read.
private struct Fields {
    private let fields: [String: Value]

    init(_ parameters: Value?, known: [String]) throws(RPCError) {
        guard let fields = parameters.map(\.map) ?? [:] else {
            throw .invalidParameters("The params are an object with named entries.")
        }
        if let unknown = fields.keys.sorted().first(where: { !known.contains($0) }) {
            throw .invalidParameters("There is no param '\(unknown.shortened)'.\(didYouMean(unknown, known))")
        }
        self.fields = fields
    }

    func has(_ name: String) -> Bool { fields[name] != nil }

    func text(_ name: String) throws(RPCError) -> String {
        guard let text = fields[name]?.string else { throw .invalidParameters("The param '\(name)' must be a string.") }
        return text
    }

    func map(_ name: String) throws(RPCError) -> [String: Value] {
        guard let value = fields[name] else { return [:] }
        guard let map = value.map else { throw .invalidParameters("The param '\(name)' must be an object.") }
        return map
    }

    func number(_ name: String) throws(RPCError) -> Int? {
        guard let value = fields[name] else { return nil }
        guard let number = value.int else { throw .invalidParameters("The param '\(name)' must be a whole number.") }
        return number
    }

    func flag(_ name: String) throws(RPCError) -> Bool {
        guard let value = fields[name] else { return false }
        guard let flag = value.bool else { throw .invalidParameters("The param '\(name)' must be true or false.") }
        return flag
    }

    var timeout: Duration? {
        get throws(RPCError) {
            guard let value = fields["timeout"] else { return nil }
            guard let timeout = value.double.flatMap(Duration.init(timeout:)) else {
                throw .invalidParameters("The param 'timeout' must be a positive number of seconds.")
            }
            return timeout
        }
    }
}
