import PluginABI
import Synchronization

/// The program's handlers of events that bubble up the chain, in the order in which they were added.
final class ChainHandlers: Sendable {
    typealias Body = ProgramHandler<ChainEvent, ChainReply>

    /// The events that a handler handles.
    enum Events: Sendable {
        case named(String)
        /// All events whose names begin with a prefix.
        case prefix(String)

        func contain(_ event: String) -> Bool {
            switch self {
            case .named(let name): event == name
            case .prefix(let prefix): event.utf8.starts(with: prefix.utf8)
            }
        }
    }

    struct Handler: Sendable {
        let number: Int
        let events: Events
        let body: Body
    }

    private let state = Mutex<(handlers: [Handler], count: Int)>(([], 0))

    func handlers(of event: String) -> [Handler] { state.withLock { $0.handlers.filter { $0.events.contain(event) } } }

    /// - Returns: The number by which the handler can be removed.
    func add(_ events: Events, _ body: Body) -> Int {
        state.withLock { state in
            state.count += 1
            state.handlers.append(Handler(number: state.count, events: events, body: body))
            return state.count
        }
    }

    func remove(_ number: Int) { state.withLock { $0.handlers.removeAll { $0.number == number } } }
}
