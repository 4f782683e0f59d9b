import HTTPTypes
import Hummingbird
import PluginABI
import ServiceLifecycle

extension PluginGateway {
    /// Makes the response of a result: bytes as they are, a cursor as lines of JSON, everything else as JSON.
    func response(to request: Request, _ value: Value, _ call: GatewayCall) throws(Problem) -> Response {
        switch value {
        case .bytes(let bytes):
            var buffer = ByteBuffer()
            bytes.withUnsafeBytes { _ = buffer.writeBytes($0) }
            return Response(
                status: .ok,
                headers: [
                    .contentType: "application/octet-stream", .cacheControl: "no-store", .contentTypeOptions: "nosniff",
                ], body: ResponseBody(byteBuffer: buffer))
        case .object(let object): return lines(of: object, call)
        default:
            guard !value.hasObject else {
                throw Problem(
                    PluginError(
                        .invalidResult,
                        "The result has objects in it, which cannot leave the program. Only a result that is itself an object "
                            + "with the action next can be sent."))
            }
            var response = Response.text(value.json, type: "application/json")
            response.headers[.contentTypeOptions] = "nosniff"
            return response
        }
    }

    /// Reads a cursor to its end, line by line, as fast as the client reads. An error ends the lines with an object that
    /// has the key `error`.
    private func lines(of cursor: Object, _ call: GatewayCall) -> Response {
        let (limit, timeout) = (configuration.cursorLimit, call.timeout)
        let body = ResponseBody { [threads] writer in
            for number in 0... {
                let line: String?
                do throws(PluginError) {
                    guard number < limit else {
                        throw PluginError(
                            .overloaded, "The cursor has more than \(limit) elements, which is the limit.")
                    }
                    line = try await Task(executorPreference: threads) { () async -> Result<Value, PluginError> in
                        do throws(PluginError) {
                            return .success(try await cursor.call("next", timeout: timeout))
                        } catch {
                            return .failure(error)
                        }
                    }.value.get().line
                } catch {
                    line =
                        Value.map(["error": ["code": .string(error.code.rawValue), "message": .string(error.message)]])
                        .json
                    try await writer.write(ByteBuffer(string: "\(line ?? "")\n"))
                    break
                }
                guard let line else { break }
                try await writer.write(ByteBuffer(string: line + "\n"))
            }
            try await writer.finish(nil)
        }
        return Response(
            status: .ok, headers: [.contentType: "application/jsonl", .cacheControl: "no-store"], body: body)
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
                throw PluginError(.invalidResult, "An element has objects in it, which cannot leave the program.")
            }
            return json
        }
    }
}

extension HTTPField.Name {
    static let contentTypeOptions = Self("X-Content-Type-Options")!
}
