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
                ], body: try body(buffer, running))
        case .object(let object): return try await lines(of: object, running)
        default:
            guard !value.hasObject else { throw Problem(.objectsInResult) }
            let text = ByteBuffer(string: value.json)
            var response = Response.text("", type: "application/json")
            response.body = try body(text, running)
            response.headers[.contentTypeOptions] = "nosniff"
            return response
        }
    }

    /// Makes the body of a result, which counts until the client has read it.
    private func body(_ buffer: ByteBuffer, _ running: RunningCall) throws(Problem) -> ResponseBody {
        guard let share = try unsent.add(buffer.readableBytes) else { return ResponseBody(inPieces: buffer) }
        let (departures, connection) = (departures, running.connection)
        return ResponseBody(contentLength: buffer.readableBytes) { writer in
            for piece in buffer.pieces { try await writer.write(piece) }
            try await writer.finish(nil)
            // What has been written has not necessarily been sent.
            if let connection { departures.hold(share, connection) }
        }
    }

    /// Reads a cursor to its end, line by line, as fast as the client reads. Each element may take as long as a call.
    /// An error ends the lines with an object that has the key `error`. The place of the call is held until then.
    private func lines(of object: Object, _ running: RunningCall) async throws(Problem) -> Response {
        let cursor = try await Cursor(object, running, limit: configuration.cursorLimit)
        let body = ResponseBody { writer in
            defer { withExtendedLifetime(running.place) {} }
            var cursor = cursor
            do {
                while let line = try await cursor.next() { try await writer.write(line + "\n") }
            } catch let error as PluginError {
                let record: Value = ["code": .string(error.code.rawValue), "message": .string(error.message)]
                try await writer.write(Value.map(["error": record]).json + "\n")
            }
            try await writer.finish(nil)
        }
        return Response(
            status: .ok, headers: [.contentType: "application/jsonl", .cacheControl: "no-store"], body: body)
    }
}

extension PluginError {
    static let objectsInResult = PluginError(
        .notRepresentable,
        "The result contains objects, which cannot leave the program. Only a result that is itself an object with the action "
            + "next can be sent.")
}

extension Value {
    /// Whether there is an object in it, at any depth.
    var hasObject: Bool {
        switch self {
        case .object: true
        case .list(let values): values.contains(where: \.hasObject)
        case .map(let entries): entries.values.contains(where: \.hasObject)
        default: false
        }
    }

    /// The line of an element; `nil` at the end.
    var line: String? {
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
