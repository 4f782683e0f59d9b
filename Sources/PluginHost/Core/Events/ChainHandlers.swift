import PluginABI
import Synchronization

/// The program's handlers of events that bubble up the chain, in the order in which they were added.
final class ChainHandlers: Sendable {
    typealias Body = ProgramHandler<ChainEvent, ChainReply>

    struct Handler: Sendable {
        let number: Int
        let event: String
        let body: Body
    }

    private let state = Mutex<(handlers: [Handler], count: Int)>(([], 0))

    func handlers(of event: String) -> [Handler] { state.withLock { $0.handlers.filter { $0.event == event } } }

    /// - Returns: The number by which it can be removed.
    func add(_ event: String, _ body: Body) -> Int {
        state.withLock { state in
            state.count += 1
            state.handlers.append(Handler(number: state.count, event: event, body: body))
            return state.count
        }
    }

    func remove(_ number: Int) { state.withLock { $0.handlers.removeAll { $0.number == number } } }
}
