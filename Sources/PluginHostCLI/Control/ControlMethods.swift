internal import PluginABI

/// The methods of the control socket. They are named like the commands and give what `--json` prints as `result`.
struct ControlMethods: Sendable {
    static let names = ["list", "routes", "services", "call", "open", "post", "inspect"]

    let service: any HostService

    func handle(_ method: String, _ parameters: Value?) async throws(RPCError) -> Value {
        do {
            switch method {
            case "list":
                _ = try Fields(parameters, known: [])
                return try await service.list()
            case "routes":
                _ = try Fields(parameters, known: [])
                return try await service.routes()
            case "services":
                _ = try Fields(parameters, known: [])
                return try await service.services()
            case "call":
                let fields = try Fields(parameters, known: ["target", "action", "parameters", "timeout"])
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
            case "inspect":
                let fields = try Fields(parameters, known: ["file", "timeout"])
                return try await service.inspect(fields.text("file"), timeout: fields.timeout)
            default:
                let close = suggestion(closest(to: method, among: Self.names))
                throw RPCError.unknownMethod("There is no method '\(method)'.\(close)")
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
            throw .invalidParameters("There is no param '\(unknown)'.\(suggestion(closest(to: unknown, among: known)))")
        }
        self.fields = fields
    }

    func text(_ name: String) throws(RPCError) -> String {
        guard let text = fields[name]?.string else { throw .invalidParameters("The param '\(name)' must be a string.") }
        return text
    }

    func map(_ name: String) throws(RPCError) -> [String: Value] {
        guard let value = fields[name] else { return [:] }
        guard let map = value.map else { throw .invalidParameters("The param '\(name)' must be an object.") }
        return map
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
