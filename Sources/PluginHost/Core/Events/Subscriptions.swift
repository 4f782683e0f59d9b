import PluginABI
import Synchronization

/// A subscriber to an event.
enum Subscriber {
    case module(Endpoint)
    /// An object of the program, of the type for the event.
    case program(plugin_object)
}

/// The subscriptions of the program, and the sticky events. Subscriptions of modules are in the table, and their event
/// names are ASCII; those of the program may be any text, and are compared by their bytes.
final class EventBoard: Sendable {
    private let state = Mutex(State())
    /// A Bloom filter with one hash: one bit for each event that the program handles, by the hash of its name. For most
    /// events that the program does not handle, the bit is clear, and reading it needs no lock.
    private let handled = Atomic<UInt64>(0)

    fileprivate struct State {
        /// Each event to which the program has ever subscribed, by the hash of its name.
        var events: [UInt64: [ProgramSubscribers]] = [:]
        /// For each bit of `handled`, the number of events with that bit that have handlers.
        var counts = [Int](repeating: 0, count: 64)
        /// The sticky events in the order in which they were posted.
        var sticky: [StickyEvent] = []
        var stickyCount = 0
    }

    struct StickyEvent {
        let number: Int
        let name: String
        let parameters: Parameters
    }

    /// Returns the program's subscriptions to an event; for a sticky event, those that existed before it was posted.
    func handlers(of event: String, number: Int? = nil) -> [plugin_object] {
        if handled.load(ordering: .acquiring) == 0 { return [] }
        let known = event.withPluginString { program(for: $0, hash: NameTable.hash($0)) }
        return (known?.handlers ?? []).filter { number ?? .max > $0.lastMissed }.map(\.object)
    }

    /// Returns the program as a subscriber to an event; `nil` if it does not handle it.
    ///
    /// - Parameter hash: The hash of the event's name.
    @inline(__always)
    func program(for event: plugin_string, hash: UInt64) -> ProgramSubscribers? {
        handled.load(ordering: .acquiring) & 1 << (hash & 63) == 0 ? nil : findProgram(for: event, hash: hash)
    }

    @inline(never)
    private func findProgram(for event: plugin_string, hash: UInt64) -> ProgramSubscribers? {
        state.withLock { state in
            state.events[hash]?.first { $0.event == event && !$0.handlers.isEmpty }
        }
    }

    /// Returns the type of the handlers of an event, created once.
    func type(of event: String, isAsync: Bool, _ make: () -> ObjectTypeEntry) -> ObjectTypeEntry {
        state.withLock { state in
            state.change(event) { _, types in types.form(isAsync: isAsync, make) }
        }
    }

    /// - Returns: The last sticky event of this name; `nil` if none has been posted.
    func add(_ handler: plugin_object, isAsync: Bool, to event: String) -> StickyEvent? {
        state.withLock { state in
            let handler = ProgramSubscribers.Handler(
                object: handler, isAsync: isAsync, lastMissed: state.stickyCount)
            state.change(event) { handlers, _ in handlers.append(handler) }
            handled.store(state.bits, ordering: .releasing)
            return state.sticky.first { $0.isNamed(event) }
        }
    }

    func remove(_ handler: plugin_object, from event: String) {
        state.withLock { state in
            state.change(event) { handlers, _ in handlers.removeAll { $0.object == handler } }
            handled.store(state.bits, ordering: .releasing)
        }
    }

    /// Stores a sticky event, replacing an earlier one of the same name.
    ///
    /// - Returns: The number of the event. It decides how a subscriber receives the event, exactly once: when the
    ///   subscriber is added, or from this post.
    func keep(_ name: String, _ parameters: Parameters) -> Int {
        state.withLock { state in
            state.sticky.removeAll { $0.isNamed(name) }
            state.stickyCount += 1
            state.sticky.append(StickyEvent(number: state.stickyCount, name: name, parameters: parameters))
            return state.stickyCount
        }
    }

    /// Returns the sticky events that were posted before a module was added. It receives all later ones when they are
    /// posted.
    func admit(_ newcomer: Generation) -> [StickyEvent] {
        state.withLock { state in
            newcomer.lastMissedEvent.store(state.stickyCount, ordering: .releasing)
            return state.sticky
        }
    }

    /// Returns whether no later event of the same name was posted.
    func isLast(_ event: StickyEvent) -> Bool {
        state.withLock { state in state.sticky.contains { $0.number == event.number } }
    }
}

extension Subscriber {
    /// Returns whether a sticky event counts as posted before the subscriber's module started. It is then delivered
    /// after the start, and not by the post itself.
    func misses(_ number: Int) -> Bool {
        guard case .module(let endpoint) = self else { return false }
        return number <= endpoint.generation.lastMissedEvent.load(ordering: .acquiring)
    }
}

extension EventBoard.State {
    /// The value that `handled` must have.
    var bits: UInt64 { counts.indices.reduce(0) { counts[$1] > 0 ? $0 | 1 << UInt64($1) : $0 } }

    /// Changes the handlers and types of an event and stores the result.
    mutating func change<Result>(
        _ event: String, _ change: (inout [ProgramSubscribers.Handler], inout ProgramSubscribers.Types) -> Result
    ) -> Result {
        event.withPluginString { name in
            let hash = NameTable.hash(name)
            let index = events[hash]?.firstIndex { $0.event == name }
            let known = index.map { events[hash]![$0] }
            var handlers = known?.handlers ?? []
            var types = known?.types ?? TwoForms()
            let result = change(&handlers, &types)
            counts[Int(hash & 63)] += (handlers.isEmpty ? 0 : 1) - (known?.handlers.isEmpty == false ? 1 : 0)
            let changed = ProgramSubscribers(event, handlers, types)
            if let index { events[hash]![index] = changed } else { events[hash, default: []].append(changed) }
            return result
        }
    }
}

extension EventBoard.StickyEvent {
    fileprivate func isNamed(_ other: String) -> Bool { name.utf8.elementsEqual(other.utf8) }
}

/// The handlers of the program for one event.
final class ProgramSubscribers: @unchecked Sendable {
    // Nothing changes after init, and the memory of the name is freed in deinit; hence @unchecked Sendable.

    struct Handler {
        /// An object of one of the types. It may no longer exist.
        let object: plugin_object
        let isAsync: Bool
        /// The number of the last sticky event that was posted before the handler was added.
        let lastMissed: Int
    }

    /// The types of the handlers, created when they are first needed and kept.
    typealias Types = TwoForms<ObjectTypeEntry>

    fileprivate let event: plugin_string
    /// The handlers in the order in which they were added.
    let handlers: [Handler]
    fileprivate let types: Types
    /// The endpoint of all of them; `nil` if some are asynchronous.
    let synchronous: Endpoint?

    fileprivate init(_ event: String, _ handlers: [Handler], _ types: Types) {
        self.event = plugin_string(allocating: event)
        (self.handlers, self.types) = (handlers, types)
        synchronous = handlers.contains(where: \.isAsync) ? nil : types.synchronous.map(EventHandlerBox.endpoint)
    }

    deinit { event.deallocate() }
}

extension plugin_string {
    /// Creates a copy of a text, which may contain zero bytes. The caller must deallocate it.
    init(allocating text: String) {
        let bytes = UnsafeMutableBufferPointer<CChar>.allocate(capacity: text.utf8.count)
        _ = bytes.initialize(from: text.utf8.lazy.map(CChar.init(bitPattern:)))
        self.init(bytes: bytes.baseAddress, count: UInt64(bytes.count))
    }

    func deallocate() { bytes.deallocate() }
}
