import HTTPTypes
import Hummingbird
import PluginABI
import ServiceLifecycle

extension PluginGateway {
    /// Makes the response of a result: bytes as they are, a cursor as lines of JSON, everything else as JSON.
    func response(to request: Request, _ value: Value, _ call: GatewayCall) async throws(Problem) -> Response {
        switch value {
        case .bytes(let bytes):
            var buffer = ByteBuffer()
            bytes.withUnsafeBytes { _ = buffer.writeBytes($0) }
            return Response(
                status: .ok,
                headers: [
                    .contentType: "application/octet-stream", .cacheControl: "no-store", .contentTypeOptions: "nosniff",
                ], body: ResponseBody(byteBuffer: buffer))
        case .object(let object): return try await lines(of: object, call)
        default:
            guard !value.hasObject else {
                throw Problem(
                    PluginError(
                        .notRepresentable,
                        "The result contains objects, which cannot leave the program. Only a result that is itself an object "
                            + "with the action next can be sent."))
            }
            var response = Response.text(value.json, type: "application/json")
            response.headers[.contentTypeOptions] = "nosniff"
            return response
        }
    }

    /// Reads a cursor to its end, line by line, as fast as the client reads. An error ends the lines with an object that
    /// has the key `error`.
    private func lines(of cursor: Object, _ call: GatewayCall) async throws(Problem) -> Response {
        let (threads, timeout, limit) = (threads, call.timeout, configuration.cursorLimit)
        @Sendable func next() async throws(PluginError) -> String? {
            try await Task(executorPreference: threads) { () async -> Result<Value, PluginError> in
                do throws(PluginError) {
                    return .success(try await cursor.call("next", timeout: timeout))
                } catch {
                    return .failure(error)
                }
            }.value.get().line
        }
        let first: String?
        do throws(PluginError) {
            first = try await next()
        } catch {
            throw Problem(error.code == .unknownAction ? .noCursor : error)
        }
        let body = ResponseBody { writer in
            var (line, count) = (first, 0)
            while let text = line {
                try await writer.write(ByteBuffer(string: text + "\n"))
                count += 1
                do throws(PluginError) {
                    line = try await next()
                    if line != nil, count >= limit { throw .longCursor(limit) }
                } catch {
                    let record: Value = ["code": .string(error.code.rawValue), "message": .string(error.message)]
                    try await writer.write(ByteBuffer(string: Value.map(["error": record]).json + "\n"))
                    break
                }
            }
            try await writer.finish(nil)
        }
        return Response(
            status: .ok, headers: [.contentType: "application/jsonl", .cacheControl: "no-store"], body: body)
    }
}

extension PluginError {
    fileprivate static let noCursor = PluginError(
        .notRepresentable, "The result is an object without the action next, which cannot leave the program.")

    fileprivate static func longCursor(_ limit: Int) -> PluginError {
        PluginError(.overloaded, "The cursor has more than \(limit) elements, which is the limit.")
    }
}

extension Value {
    /// Whether there is an object in it, at any depth.
    fileprivate var hasObject: Bool {
        switch self {
        case .object: true
        case .list(let values): values.contains(where: \.hasObject)
        case .map(let entries): entries.values.contains(where: \.hasObject)
        default: false
        }
    }

    /// The line of an element; `nil` at the end.
    fileprivate var line: String? {
        get throws(PluginError) {
            if isNull { return nil }
            guard !hasObject else {
                throw PluginError(.invalidResult, "An element contains objects, which cannot leave the program.")
            }
            return json
        }
    }
}

extension HTTPField.Name {
    static let contentTypeOptions = Self("X-Content-Type-Options")!
}
