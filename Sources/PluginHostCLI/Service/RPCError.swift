internal import PluginABI

/// Why a request to a host has no result, as JSON-RPC says it.
struct RPCError: Error, Sendable {
    let code: Int
    let message: String
    let data: Value?

    private init(code: Int, message: String, data: Value? = nil) {
        (self.code, self.message, self.data) = (code, message, data)
    }

    static func parse(_ message: String) -> RPCError { RPCError(code: -32700, message: message) }
    static func invalidRequest(_ message: String) -> RPCError { RPCError(code: -32600, message: message) }
    static func unknownMethod(_ message: String) -> RPCError { RPCError(code: -32601, message: message) }
    static func invalidParameters(_ message: String) -> RPCError { RPCError(code: -32602, message: message) }

    /// An error of the host or of a module. Its own code is under `data`.
    static func host(_ error: PluginError) -> RPCError {
        var data: [String: Value] = ["code": .string(error.code.rawValue)]
        data["source"] = error.source.map(Value.string)
        return RPCError(code: -32000, message: error.message, data: .map(data))
    }

    /// A limit of the control socket is reached.
    static func overloaded(_ message: String) -> RPCError { .host(PluginError(.overloaded, message)) }

    /// The error as commands report it: that of the host or of a module, where it is one.
    var reported: PluginError {
        PluginError(
            .init(rawValue: data?["code"]?.string ?? "requestRefused"), message, source: data?["source"]?.string)
    }

    /// The error of an answer.
    init(_ record: Value?) {
        self.init(
            code: record?["code"]?.int ?? 0,
            message: record?["message"]?.string ?? "The host gave neither a result nor an error.",
            data: record?["data"])
    }

    func response(id: Value) -> Value {
        var error: [String: Value] = ["code": .int(code), "message": .string(message)]
        error["data"] = data
        return ["jsonrpc": "2.0", "id": id, "error": .map(error)]
    }
}
