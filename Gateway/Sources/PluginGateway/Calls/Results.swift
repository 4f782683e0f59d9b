import HTTPTypes
import Hummingbird
import PluginABI
import PluginHost

extension PluginGateway {
    /// Makes the response of a result: bytes as they are, a cursor as lines of JSON, everything else as JSON.
    func response(_ value: Value, _ running: RunningCall) async throws(Problem) -> Response {
        switch value {
        case .bytes(let bytes):
            var buffer = ByteBuffer()
            bytes.withUnsafeBytes { _ = buffer.writeBytes($0) }
            return Response(
                status: .ok,
                headers: [
                    .contentType: "application/octet-stream", .cacheControl: "no-store", .contentTypeOptions: "nosniff",
                ], body: ResponseBody(inPieces: buffer))
        case .object(let object): return try await lines(of: object, running)
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

    /// Reads a cursor to its end, line by line, as fast as the client reads. Each element may take as long as a call. An
    /// error ends the lines with an object that has the key `error`. The place of the call is held until then.
    private func lines(of cursor: Object, _ running: RunningCall) async throws(Problem) -> Response {
        let limit = configuration.cursorLimit
        @Sendable func next() async throws(PluginError) -> String? {
            try await running.perform { () async throws(PluginError) in
                try await cursor.call("next", timeout: running.call.timeout)
            }.line
        }
        let first: String?
        do throws(PluginError) {
            first = try await next()
        } catch {
            throw Problem(error.code == .unknownAction ? .noCursor : error)
        }
        let body = ResponseBody { writer in
            defer { withExtendedLifetime(running.place) {} }
            var (line, count) = (first, 0)
            while let text = line {
                for piece in ByteBuffer(string: text + "\n").pieces { try await writer.write(piece) }
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
