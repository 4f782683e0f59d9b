internal import PluginABI
internal import PluginFile
internal import PluginHost

/// Answers JSON-RPC 2.0 messages, one per line: requests, notifications, and batches of them.
struct RPCEndpoint: Sendable {
    typealias Handler = @Sendable (_ method: String, _ parameters: Value?) async throws(RPCError) -> Value

    static let batchLimit = 1_000
    private static let batchConcurrency = 16

    /// Admits a request for a method, and returns a function that must be called when the answer is made.
    typealias Gate = @Sendable (_ method: String) async throws(RPCError) -> @Sendable () -> Void

    let handler: Handler
    var gate: Gate = { _ in {} }
    /// The executor on which notifications are handled.
    var executor: any TaskExecutor = BlockingExecutor.shared
    /// The load to which the bytes of each answer are added.
    var load: ClientLoad? = nil
    /// Limits how many long texts are read or written at a time; `nil` for no limit.
    var longTexts: LongTexts? = nil

    /// Returns the answer without its line feed; `nil` if none is expected.
    func answer(_ line: some Collection<UInt8> & Sendable) async -> String? {
        let parsed = LongTexts.work(longTexts, line.count) {
            Result { () throws(PluginError) in try Value(jsonMessage: Array(line)) }
        }
        let message: Value
        do throws(PluginError) { message = try parsed.get() } catch {
            return answerText(of: RPCError.parse(error.message).response(id: .null))
        }
        guard case .list(let batch) = message else { return await answer(request: message) }
        if batch.isEmpty || batch.count > Self.batchLimit {
            let message = "A batch must have 1 to \(Self.batchLimit) requests, not \(batch.count)."
            return answerText(of: RPCError.invalidRequest(message).response(id: .null))
        }
        let answers = await answer(batch: batch)
        guard !answers.isEmpty else { return nil }
        load?.add(answers.count + 1)
        return "[" + answers.joined(separator: ",") + "]"
    }

    /// Returns an answer as text, and adds its bytes to the load. If there is no room for the answer, it is replaced by
    /// an error.
    private func answerText(of answer: Value) -> String {
        var (answer, reserved) = (answer, answer.leastJSONBytes)
        do throws(RPCError) { try load?.reserve(reserved) } catch {
            // Sent regardless of its length: the id is no longer than the line that contained it, which was accepted.
            (answer, reserved) = (error.response(id: answer["id"] ?? .null), 0)
        }
        let text = LongTexts.work(longTexts, reserved) { answer.json }
        load?.add(text.utf8.count - reserved)
        return text
    }

    private func answer(batch: [Value]) async -> [String] {
        await withTaskGroup(of: String?.self) { group in
            var answers: [String] = []
            for (index, request) in batch.enumerated() {
                if index >= Self.batchConcurrency, let answer = await group.next() ?? nil { answers.append(answer) }
                group.addTask { await answer(request: request) }
            }
            for await answer in group { if let answer { answers.append(answer) } }
            return answers
        }
    }

    private func answer(request: Value) async -> String? {
        let id = request["id"]
        do {
            let (method, parameters) = try Self.check(request)
            guard let id else {
                // A new task: no client waits for a notification, so it must not be cancelled when the client
                // disconnects.
                await Task(executorPreference: executor) { () async -> Void in
                    guard let leave = try? await gate(method) else { return }
                    defer { leave() }
                    _ = try? await handler(method, parameters)
                }.value
                return nil
            }
            let leave = try await gate(method)
            // The slot is kept until the answer is made, because results take memory, too.
            defer { leave() }
            return answerText(of: ["jsonrpc": "2.0", "id": id, "result": try await handler(method, parameters)])
        } catch {
            return answerText(of: error.response(id: id.flatMap { $0.isRequestID ? $0 : nil } ?? .null))
        }
    }

    private static func check(_ request: Value) throws(RPCError) -> (method: String, parameters: Value?) {
        guard case .map(let fields) = request else { throw .invalidRequest("A request must be an object.") }
        guard fields["jsonrpc"] == "2.0" else { throw .invalidRequest("The request lacks \"jsonrpc\": \"2.0\".") }
        if let id = fields["id"], !id.isRequestID { throw .invalidRequest("An id must be a string, a number or null.") }
        guard let method = fields["method"]?.string else { throw .invalidRequest("The request lacks a \"method\".") }
        switch fields["params"] {
        case nil, .map, .list: return (method, fields["params"])
        default: throw .invalidRequest("\"params\" must be an object or an array.")
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
