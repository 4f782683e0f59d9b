internal import PluginABI
internal import PluginHost

/// Why a JSON-RPC request has no result.
struct RPCError: Error, Sendable {
    let code: Int
    let message: String
    var data: Value? = nil

    static let parse = RPCError(code: -32700, message: "This line is no JSON.")
    static func invalidRequest(_ message: String) -> RPCError { RPCError(code: -32600, message: message) }
    static func unknownMethod(_ message: String) -> RPCError { RPCError(code: -32601, message: message) }
    static func invalidParameters(_ message: String) -> RPCError { RPCError(code: -32602, message: message) }

    /// An error of the host or of a module. Its own code is under `data`.
    static func host(_ error: PluginError) -> RPCError {
        var data: [String: Value] = ["code": .string(error.code.rawValue)]
        if let source = error.source { data["source"] = .string(source) }
        return RPCError(code: -32000, message: error.message, data: .map(data))
    }

    func response(id: Value) -> Value {
        var error: [String: Value] = ["code": .int(code), "message": .string(message)]
        error["data"] = data
        return ["jsonrpc": "2.0", "id": id, "error": .map(error)]
    }
}

/// Answers JSON-RPC 2.0 messages, one a line: requests, notifications, and batches of them.
struct RPCEndpoint: Sendable {
    typealias Handler = @Sendable (_ method: String, _ parameters: Value?) async throws(RPCError) -> Value

    static let batchLimit = 1_000
    private static let batchConcurrency = 16

    let handler: Handler

    /// The answer, without its line end; nil where nobody expects one.
    func answer(_ line: some Collection<UInt8> & Sendable) async -> String? {
        guard let text = String(validating: line, as: UTF8.self), let message = try? Value(json: text) else {
            return RPCError.parse.response(id: .null).json
        }
        guard case .list(let batch) = message else { return await answer(request: message)?.json }
        if batch.isEmpty || batch.count > Self.batchLimit {
            let message = "A batch holds 1 to \(Self.batchLimit) requests, not \(batch.count)."
            return RPCError.invalidRequest(message).response(id: .null).json
        }
        let answers = await answer(batch: batch)
        return answers.isEmpty ? nil : Value.list(answers).json
    }

    private func answer(batch: [Value]) async -> [Value] {
        await withTaskGroup(of: Value?.self) { group in
            var answers: [Value] = []
            for (index, request) in batch.enumerated() {
                if index >= Self.batchConcurrency, let answer = await group.next() ?? nil { answers.append(answer) }
                group.addTask { await answer(request: request) }
            }
            for await answer in group { if let answer { answers.append(answer) } }
            return answers
        }
    }

    private func answer(request: Value) async -> Value? {
        let id = request["id"]
        do {
            let (method, parameters) = try Self.check(request)
            guard let id else {
                // Nobody waits for it, so nobody who goes away cancels it.
                _ = await Task { () async -> Void in _ = try? await handler(method, parameters) }.value
                return nil
            }
            return ["jsonrpc": "2.0", "id": id, "result": try await handler(method, parameters)]
        } catch {
            return error.response(id: id.flatMap { $0.isRequestID ? $0 : nil } ?? .null)
        }
    }

    private static func check(_ request: Value) throws(RPCError) -> (method: String, parameters: Value?) {
        guard case .map(let fields) = request else { throw .invalidRequest("A request is an object.") }
        guard fields["jsonrpc"] == "2.0" else { throw .invalidRequest("The request lacks \"jsonrpc\": \"2.0\".") }
        if let id = fields["id"], !id.isRequestID { throw .invalidRequest("An id is a string, a number or null.") }
        guard let method = fields["method"]?.string else { throw .invalidRequest("The request names no method.") }
        switch fields["params"] {
        case nil, .map, .list: return (method, fields["params"])
        default: throw .invalidRequest("The params are neither an object nor an array.")
        }
    }
}

extension Value {
    fileprivate var isRequestID: Bool {
        switch self {
        case .string, .int, .double, .null: true
        default: false
        }
    }
}
