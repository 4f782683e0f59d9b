import PluginABI

/// Reads server-sent events from the parts in which they arrive.
struct EventReader: Sendable {
    struct Event: Sendable {
        var name = ""
        var data: [UInt8] = []
    }

    private let limit: Int
    private var line: [UInt8] = []
    private var event = Event()

    /// - Parameter limit: The maximum size of an event, in bytes.
    init(limit: Int) { self.limit = limit }

    /// Reads a part, and returns the events that are complete.
    ///
    /// - Throws: `invalidResult` if an event is too large.
    mutating func read(_ bytes: [UInt8]) throws(PluginError) -> [Event] {
        var events: [Event] = []
        for byte in bytes {
            guard byte == 0x0A else {
                line.append(byte)
                guard line.count + event.data.count <= limit + 64 else {
                    throw PluginError(.invalidResult, "An event of the answer has more than \(limit) bytes.")
                }
                continue
            }
            if line.last == 0x0D { line.removeLast() }
            if line.isEmpty {
                if !event.name.isEmpty { events.append(event) }
                event = Event()
            } else if line.starts(with: Self.event) {
                event.name = String(decoding: line.dropFirst(Self.event.count).prefix(128), as: UTF8.self)
            } else if line.starts(with: Self.data) {
                event.data += line.dropFirst(Self.data.count)
            }
            line = []
        }
        return events
    }

    private static let event = Array("event: ".utf8)
    private static let data = Array("data: ".utf8)
}
