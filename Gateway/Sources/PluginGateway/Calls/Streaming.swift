import HTTPTypes
import Hummingbird
import PluginABI
import PluginHost

extension PluginGateway {
    /// Makes a call and answers with server-sent events: the calls of its callbacks, then `result` or `error`.
    ///
    /// The head of the response is sent with the first event, or after the time of a heartbeat. Before it, an error is
    /// a response with a status of its own.
    func stream(
        _ call: GatewayCall, _ events: CallEvents, _ request: ReceivedRequest, _ connection: Connection?
    ) async throws(Problem) -> Response {
        let running = try start(call, connection)
        let opening = Task { [self] in
            do throws(Problem) {
                let value = try await measured(call, request) { context throws(Problem) in
                    let value = try await running.open(context)
                    guard value.object != nil || !value.hasObject else { throw Problem(.objectsInResult) }
                    return value
                }
                events.finish(.success(value))
            } catch {
                events.finish(.failure(error))
            }
        }
        await withTaskCancellationHandler {
            await events.arrive()
        } onCancel: {
            opening.cancel()
        }
        if case .failure(let problem) = events.earlyResult {
            events.close()
            throw problem
        }
        let body = ResponseBody { writer in
            defer {
                opening.cancel()
                events.close()
                withExtendedLifetime(running.slot) {}
            }
            while true {
                let (text, result) = events.take()
                if let result {
                    try await writer.write(text)
                    try await self.write(result, running, to: &writer)
                    return try await writer.finish(nil)
                }
                try await writer.write(text)
                await events.arrive()
                try Task.checkCancellation()
            }
        }
        return Response(
            status: .ok, headers: [.contentType: "text/event-stream", .cacheControl: "no-store"], body: body)
    }

    /// Sends the last events of a call: `result`, after an `item` for each element of a cursor; or `error`.
    @concurrent private func write(
        _ result: Result<Value, Problem>, _ running: RunningCall, to writer: inout any ResponseBodyWriter
    ) async throws {
        do {
            var value = try result.get()
            if let object = value.object {
                let cursor = try await Cursor(
                    object, running, limit: configuration.cursorLimit, head: "event: item\ndata: ", tail: "\n\n")
                defer { cursor.close() }
                while let events = try await cursor.next() { try await writer.write(events) }
                value = .null
            }
            let text = "event: result\ndata: \(value.json)\n\n"
            let share = try unsent.add(text.utf8.count)
            try await writer.write(text)
            if let share, let connection = running.connection { departures.hold(share, connection) }
        } catch let error as PluginError {
            try await writer.write("event: error\ndata: \(Problem(error).json)\n\n")
        } catch let problem as Problem {
            try await writer.write("event: error\ndata: \(problem.json)\n\n")
        }
    }
}

extension ResponseBodyWriter {
    /// Sends a text in pieces, so that a slow client is seen to read.
    @concurrent mutating func write(_ text: String) async throws {
        for piece in ByteBuffer(string: text).pieces { try await write(piece) }
    }
}
