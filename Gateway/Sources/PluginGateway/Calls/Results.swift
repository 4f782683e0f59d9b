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
            guard !value.hasObject else { throw Problem(.objectsInResult) }
            let body = ByteBuffer(string: value.json)
            var fields = HTTPFields()
            fields.reserveCapacity(Self.jsonFields.count + 2)  // Hummingbird adds the date.
            fields.append(HTTPField(name: .contentLength, value: String(body.readableBytes)))
            fields.append(contentsOf: Self.jsonFields)
            return Response(status: .ok, headers: fields, body: ResponseBody(inPieces: body))
        }
    }

    private static let jsonFields: [HTTPField] = [
        HTTPField(name: .contentType, value: "application/json"), HTTPField(name: .cacheControl, value: "no-store"),
        HTTPField(name: .contentTypeOptions, value: "nosniff"),
    ]

    /// Counts the body of a response until the client has read it. Bodies of unknown length are made as fast as the
    /// client reads.
    func counted(_ response: Response, _ connection: Connection?) throws(Problem) -> Response {
        guard let length = response.body.contentLength, let share = try unsent.add(length) else { return response }
        let (departures, body) = (departures, response.body)
        var response = response
        response.body = ResponseBody(contentLength: length) { writer in
            try await body.write(writer)
            // What has been written has not necessarily been sent.
            if let connection { departures.hold(share, connection) }
        }
        return response
    }

    /// Reads a cursor to its end, as lines, as fast as the client reads. Each element may take as long as a call.
    /// An error ends the lines with an object that has the key `error`. The slot of the call is kept until then.
    private func lines(of object: Object, _ running: RunningCall) async throws(Problem) -> Response {
        let cursor = try await Cursor(object, running, limit: configuration.cursorLimit)
        let body = ResponseBody { writer in
            defer {
                cursor.close()
                withExtendedLifetime(running.slot) {}
            }
            do {
                while let lines = try await cursor.next() { try await writer.write(lines) }
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
    /// Whether the value contains an object, at any depth.
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
