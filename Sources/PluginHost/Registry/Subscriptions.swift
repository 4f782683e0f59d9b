import CPluginABI
import Glibc
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
    /// How many handlers of the program there are, for all events.
    private let handlerCount = Atomic(0)

    private struct State {
        /// By event, in the order in which they came.
        var handlers: [String: [Handler]] = [:]
        /// The types of handlers, for each event that the program has ever subscribed to.
        var types: [String: ObjectTypeEntry] = [:]
        /// In the order in which they were posted.
        var sticky: [StickyEvent] = []
        var stickyCount = 0
    }

    private struct Handler {
        let object: plugin_object
        /// The number of the last sticky event that it gets as one that was posted before it came.
        let lastMissed: Int
    }

    struct StickyEvent {
        let number: Int
        let name: String
        let parameters: Parameters
    }

    /// The subscriptions of the program to an event; of a sticky one those that were there before it.
    func handlers(of event: String, number: Int? = nil) -> [plugin_object] {
        if handlerCount.load(ordering: .acquiring) == 0 { return [] }
        return state.withLock { state in
            (state.handlers[event] ?? []).filter { number ?? .max > $0.lastMissed }.map(\.object)
        }
    }

    @inline(__always)
    func hasHandlers(of event: plugin_string) -> Bool {
        handlerCount.load(ordering: .acquiring) > 0 && isHandled(event.text)
    }

    private func isHandled(_ event: String) -> Bool { state.withLock { $0.handlers[event] != nil } }

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

    /// - Returns: The event, if it is sticky and was posted before.
    func add(_ handler: plugin_object, to event: String) -> StickyEvent? {
        state.withLock { state in
            handlerCount.add(1, ordering: .releasing)
            state.handlers[event, default: []].append(Handler(object: handler, lastMissed: state.stickyCount))
            return state.sticky.first { $0.name == event }
        }
    }

    func remove(_ handler: plugin_object, from event: String) {
        state.withLock { state in
            state.handlers[event]?.removeAll { $0.object == handler }
            handlerCount.subtract(1, ordering: .releasing)
            if state.handlers[event]?.isEmpty == true { state.handlers[event] = nil }
        }
    }

    /// Keeps an event in the place of an earlier one of its name.
    ///
    /// - Returns: Its number. Who subscribes gets an event once: as one that was posted before, or as this one.
    func keep(_ name: String, _ parameters: Parameters) -> Int {
        state.withLock { state in
            state.sticky.removeAll { $0.name == name }
            state.stickyCount += 1
            state.sticky.append(StickyEvent(number: state.stickyCount, name: name, parameters: parameters))
            return state.stickyCount
        }
    }

    /// The sticky events that were posted before a module came. From now on it gets them when they are posted.
    func admit(_ newcomer: Generation) -> [StickyEvent] {
        state.withLock { state in
            newcomer.lastMissedEvent.store(state.stickyCount, ordering: .releasing)
            return state.sticky
        }
    }

    /// Whether no later one of its name was posted.
    func isLast(_ event: StickyEvent) -> Bool {
        state.withLock { state in state.sticky.contains { $0.number == event.number } }
    }
}

extension Subscriber {
    /// Whether a sticky event reaches it as one that was posted before it came.
    func misses(_ number: Int) -> Bool {
        guard case .module(let endpoint) = self else { return false }
        return number <= endpoint.generation.lastMissedEvent.load(ordering: .acquiring)
    }
}

/// The modules that subscribe to one event.
final class ModuleSubscribers: @unchecked Sendable {
    // Nothing changes after init, and the memory of the name and of the list is freed in deinit; hence @unchecked
    // Sendable.

    /// The name of the event.
    private let event: plugin_string
    /// In the order of the modules. They are never freed; this list of them is, with the object.
    let endpoints: UnsafeBufferPointer<Unmanaged<Endpoint>>
    /// Whether none of them is asynchronous.
    let areSynchronous: Bool

    private init(_ event: String, _ endpoints: [Endpoint]) {
        self.event = plugin_string(bytes: UnsafePointer(strdup(event)!), count: UInt64(event.utf8.count))
        let memory = UnsafeMutableBufferPointer<Unmanaged<Endpoint>>.allocate(capacity: endpoints.count)
        _ = memory.initialize(from: endpoints.lazy.map(Unmanaged.passUnretained))
        self.endpoints = UnsafeBufferPointer(memory)
        areSynchronous = !endpoints.contains(where: \.isAsync)
    }

    deinit {
        free(UnsafeMutableRawPointer(mutating: event.bytes))
        endpoints.deallocate()
    }

    /// Who gets which event, of these modules.
    static func index(of generations: [Generation]) -> NameIndex<ModuleSubscribers> {
        var endpoints: [String: [Endpoint]] = [:]
        for generation in generations {
            for (event, endpoint) in generation.subscriptions { endpoints[event, default: []].append(endpoint) }
        }
        return NameIndex(endpoints.map(ModuleSubscribers.init), by: \.event)
    }
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
    }

    /// Ends the subscription. A handler that runs goes on.
    public func cancel() {
        guard !isOver.exchange(true, ordering: .acquiringAndReleasing) else { return }
        events.remove(handler, from: event)
        _ = ObjectTable.release(handler)
    }

    deinit { cancel() }
}

extension Table {
    /// The modules that subscribe to an event, in their order.
    func moduleSubscribers(of event: String) -> [Endpoint] {
        withExtendedLifetime(self) {
            event.withPluginString { subscribers(of: $0) }?._withUnsafeGuaranteedRef { subscribers in
                subscribers.endpoints.map { $0.takeUnretainedValue() }
            } ?? []
        }
    }

    /// Another generation of the same module.
    func successor(of generation: Generation) -> Generation? {
        generations.first { $0.name == generation.name && $0 !== generation }
    }
}
