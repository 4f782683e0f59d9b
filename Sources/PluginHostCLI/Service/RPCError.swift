internal import PluginABI

/// The error of a request to a host, in JSON-RPC form.
struct RPCError: Error, Sendable {
    let code: Int
    let message: String
    var data: Value? = nil

    static func parse(_ message: String) -> RPCError { RPCError(code: -32700, message: message) }
    static func invalidRequest(_ message: String) -> RPCError { RPCError(code: -32600, message: message) }
    static func unknownMethod(_ message: String) -> RPCError { RPCError(code: -32601, message: message) }
    static func invalidParameters(_ message: String) -> RPCError { RPCError(code: -32602, message: message) }

    /// Makes the error for an error of the host or of a module. `data` contains the code of that error.
    static func host(_ error: PluginError) -> RPCError {
        let data = Value.entries(["code": .string(error.code.rawValue), "source": error.source.map(Value.string)])
        return RPCError(code: -32000, message: error.message, data: data)
    }

    /// Makes the error for a limit of the control socket that was reached.
    static func overloaded(_ message: String) -> RPCError { .host(PluginError(.overloaded, message)) }

    /// The error that commands report: that of the host or of the module, if there is one.
    var reported: PluginError {
        PluginError(
            .init(rawValue: data?["code"]?.string ?? "requestRefused"), message, source: data?["source"]?.string)
    }

    func response(id: Value) -> Value {
        [
            "jsonrpc": "2.0", "id": id,
            "error": .entries(["code": .int(code), "message": .string(message), "data": data]),
        ]
    }
}

extension RPCError {
    /// Reads the error of an answer.
    init(_ record: Value?) {
        self.init(
            code: record?["code"]?.int ?? 0,
            message: record?["message"]?.string ?? "The host returned neither a result nor an error.",
            data: record?["data"])
    }
}
