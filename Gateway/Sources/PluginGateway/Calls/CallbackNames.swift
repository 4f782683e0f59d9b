import HTTPTypes
import Hummingbird
import PluginABI
import PluginHost

/// Makes the callbacks of a call. Where an action takes an object, a client gives a name, and calls of the callback
/// become events of that name.
struct CallbackMaker: Sendable {
    let host: PluginHost
    let events: CallEvents

    /// - Throws: `mistypedParameter` if the name is not valid for events.
    func callback(_ name: String, for parameter: String) throws(Problem) -> Value {
        guard Self.isEventName(name) else {
            throw Problem(
                .mistypedParameter,
                "The parameter “\(parameter)” takes the name of the events for a callback: a letter, then at most 63 letters, "
                    + "digits, “_”, “.” or “-”, and not result, error, item or missed.")
        }
        return host.callback { [events] arguments in
            try events.add(name, arguments)
            return .null
        }.value
    }

    /// The names of the events that are not calls of callbacks.
    static let ownNames: Set<String> = ["result", "error", "item", "missed"]

    private static func isEventName(_ name: String) -> Bool {
        guard (1...64).contains(name.utf8.count), let first = name.first, first.isLetter else { return false }
        return name.allSatisfy { $0.isASCII && ($0.isLetter || $0.isNumber || "_.-".contains($0)) }
            && !ownNames.contains(name)
    }
}

/// The types that a client accepts, as far as they decide between one result and a stream of events.
struct AcceptedTypes: Sendable {
    private let ranges: Set<String>

    init(_ request: ReceivedRequest) {
        guard let first = request.header(.accept), first != "*/*" else {
            ranges = request.header(.accept).map { [$0] } ?? []
            isEmpty = ranges.isEmpty
            return
        }
        let text = request.headers[values: .accept].joined(separator: ",").lowercased()
        ranges = Set(
            text.split(separator: ",").compactMap { range in
                let parts = range.split(separator: ";").map(\.trimmingSpaces)
                let isRefused = parts.dropFirst().contains { Self.isZero($0) }
                return isRefused ? nil : parts.first.map(String.init)
            })
        isEmpty = text.isEmpty
    }

    private let isEmpty: Bool

    private static func isZero(_ parameter: Substring) -> Bool {
        let parts = parameter.split(separator: "=").map(\.trimmingSpaces)
        return parts.count == 2 && parts[0] == "q" && Double(parts[1]) == 0
    }

    /// Whether a stream of events is accepted.
    var acceptsEvents: Bool { isEmpty || !ranges.isDisjoint(with: ["text/event-stream", "text/*", "*/*"]) }

    /// Whether a stream of events is asked for, and nothing that a single result could be.
    var prefersEvents: Bool {
        ranges.contains("text/event-stream")
            && ranges.isDisjoint(with: ["application/json", "application/octet-stream", "application/*", "*/*"])
    }
}
