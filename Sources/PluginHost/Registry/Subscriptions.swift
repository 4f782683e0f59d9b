import CPluginABI
import PluginABI
import Synchronization

/// Who subscribes to an event.
enum Subscriber {
    case module(Endpoint)
    /// An object of the program, of the type that belongs to the event.
    case program(plugin_object)
}

/// The subscriptions of the program, and the sticky events. Those of modules stand in the table.
final class EventBoard: Sendable {
    private let state = Mutex(State())

    private struct State {
        /// By event, in the order in which they came.
        var handlers: [String: [plugin_object]] = [:]
        /// The types of handlers, for each event that the program has ever subscribed to.
        var types: [String: ObjectTypeEntry] = [:]
        /// In the order in which they were posted.
        var sticky: [StickyEvent] = []
        var stickyCount = 0
    }

    struct StickyEvent {
        let number: Int
        let name: String
        let parameters: Parameters
    }

    func handlers(of event: String) -> [plugin_object] { state.withLock { $0.handlers[event] ?? [] } }

    /// The type of the handlers of an event, made once.
    func type(of event: String, isAsync: Bool, _ make: () -> ObjectTypeEntry) -> ObjectTypeEntry {
        let key = (isAsync ? "async " : "") + event
        return state.withLock { state in
            if let type = state.types[key] { return type }
            let type = make()
            state.types[key] = type
            return type
        }
    }

    func add(_ handler: plugin_object, to event: String) {
        state.withLock { $0.handlers[event, default: []].append(handler) }
    }

    func remove(_ handler: plugin_object, from event: String) {
        state.withLock { state in
            state.handlers[event]?.removeAll { $0 == handler }
            if state.handlers[event]?.isEmpty == true { state.handlers[event] = nil }
        }
    }

    /// Keeps an event in the place of an earlier one of its name.
    func keep(_ name: String, _ parameters: Parameters) {
        state.withLock { state in
            state.sticky.removeAll { $0.name == name }
            state.stickyCount += 1
            state.sticky.append(StickyEvent(number: state.stickyCount, name: name, parameters: parameters))
        }
    }

    /// The sticky events that are there now.
    var sticky: [StickyEvent] { state.withLock { $0.sticky } }
}

extension Table {
    /// Who gets an event, of the modules: in their order.
    func subscribers(of event: String) -> [Endpoint] { generations.compactMap { $0.subscriptions[event] } }
}

/// A subscription of the program, made with `PluginHost.on`. It ends when it is cancelled or dropped.
public final class Subscription: Sendable {
    /// The event.
    public let event: String
    private let events: EventBoard
    private let handler: plugin_object
    private let isOver = Atomic(false)

    init(_ handler: plugin_object, to event: String, on events: EventBoard) {
        (self.event, self.events, self.handler) = (event, events, handler)
        events.add(handler, to: event)
    }

    /// Ends the subscription. A handler that runs goes on.
    public func cancel() {
        guard !isOver.exchange(true, ordering: .acquiringAndReleasing) else { return }
        events.remove(handler, from: event)
        _ = ObjectTable.release(handler)
    }

    deinit { cancel() }
}
