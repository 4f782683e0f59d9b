import HTTPTypes
import Hummingbird
import PluginABI
import ServiceLifecycle

extension PluginGateway {
    /// `GET /events`: what happens to the modules, as server-sent events.
    func eventsResponse(_ request: ReceivedRequest, _ connection: Connection?) throws(Problem) -> Response {
        let start = try position(in: request)
        let headers: HTTPFields = [.contentType: "text/event-stream", .cacheControl: "no-store"]
        if request.method == .head { return Response(status: .ok, headers: headers) }
        let (events, departures) = (events, departures)
        let (arrivals, end) = try events.arrivals()
        let body = ResponseBody { writer in
            var connected: Departures.Connected?
            if let connection { connected = await departures.watch(connection, EndHandler { _ in end() }) }
            defer { connected?.forget() }
            var last = start ?? events.last
            var isFirst = true
            for await _ in arrivals.cancelOnGracefulShutdown() {
                var hasWritten = false
                while true {
                    let (missed, new) = events.events(after: last)
                    guard let end = new.last else { break }
                    var text = missed > 0 ? "event: missed\ndata: {\"count\":\(missed)}\n\n" : ""
                    for event in new {
                        text += "id: \(events.run)-\(event.number)\nevent: \(event.name)\ndata: \(event.data)\n\n"
                    }
                    try await writer.write(ByteBuffer(string: text))
                    (last, hasWritten) = (end.number, true)
                }
                // The first heartbeat shows the client that the stream is open.
                if !hasWritten { try await writer.write(ByteBuffer(string: isFirst ? ": open\n\n" : ":\n\n")) }
                isFirst = false
            }
            try await writer.finish(nil)
        }
        return Response(status: .ok, headers: headers, body: body)
    }

    /// The number of the last event that the client has; `nil` if it wants only the following ones. Events of an earlier
    /// run have other numbers, so after it all events count as new.
    private func position(in request: ReceivedRequest) throws(Problem) -> Int? {
        guard let text = request.header(.lastEventID), !text.isEmpty else { return nil }
        let parts = text.split(separator: "-", omittingEmptySubsequences: false)
        guard parts.count == 2, let number = Int(parts[1]), number >= 0 else {
            throw Problem(.invalidHeader, "The header Last-Event-ID is not an id of this stream.")
        }
        return parts[0] == events.run && number <= events.last ? number : 0
    }
}

extension HTTPField.Name {
    static let lastEventID = Self("Last-Event-ID")!
}
