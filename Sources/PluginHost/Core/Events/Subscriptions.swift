import CPluginABI
import PluginABI
import Synchronization

/// Who subscribes to an event.
enum Subscriber {
    case module(Endpoint)
    /// An object of the program, of the type that belongs to the event.
    case program(plugin_object)
}

/// The subscriptions of the program, and the sticky events. Those of modules stand in the table, and their names are
/// ASCII; the program's may be any, and are the same if their bytes are.
final class EventBoard: Sendable {
    private let state = Mutex(State())
    /// A bit for each event that the program handles, by the hash of its name: most events that it does not handle have
    /// none, and need not take the lock to find that out. (A Bloom filter with one hash.)
    private let handled = Atomic<UInt64>(0)

    fileprivate struct State {
        /// Each event that the program has ever subscribed to, by the hash of its name.
        var events: [UInt64: [ProgramSubscribers]] = [:]
        /// How many events with handlers there are for each bit of `handled`.
        var counts = [Int](repeating: 0, count: 64)
        /// In the order in which they were posted.
        var sticky: [StickyEvent] = []
        var stickyCount = 0
    }

    struct StickyEvent {
        let number: Int
        let name: String
        let parameters: Parameters
    }

    /// The subscriptions of the program to an event; of a sticky one those that were there before it.
    func handlers(of event: String, number: Int? = nil) -> [plugin_object] {
        if handled.load(ordering: .acquiring) == 0 { return [] }
        let known = event.withPluginString { program(for: $0, hash: NameTable.hash($0)) }
        return (known?.handlers ?? []).filter { number ?? .max > $0.lastMissed }.map(\.object)
    }

    /// The program as a subscriber of an event; nil where it does not handle it.
    ///
    /// - Parameter hash: Of the event.
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

    /// The type of the handlers of an event, made once.
    func type(of event: String, isAsync: Bool, _ make: () -> ObjectTypeEntry) -> ObjectTypeEntry {
        state.withLock { state in
            state.change(event) { _, types in types.form(isAsync: isAsync, make) }
        }
    }

    /// - Returns: The event, if it is sticky and was posted before.
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

    /// Keeps an event in the place of an earlier one of its name.
    ///
    /// - Returns: Its number. Who subscribes gets an event once: as one that was posted before, or as this one.
    func keep(_ name: String, _ parameters: Parameters) -> Int {
        state.withLock { state in
            state.sticky.removeAll { $0.isNamed(name) }
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

extension EventBoard.State {
    /// What `handled` is to be.
    var bits: UInt64 { counts.indices.reduce(0) { counts[$1] > 0 ? $0 | 1 << UInt64($1) : $0 } }

    /// Puts what is changed in the place of what is known of an event.
    mutating func change<Result>(
        _ event: String, _ change: (inout [ProgramSubscribers.Handler], inout ProgramSubscribers.Types) -> Result
    ) -> Result {
        event.withPluginString { name in
            let hash = NameTable.hash(name)
            let place = events[hash]?.firstIndex { $0.event == name }
            let known = place.map { events[hash]![$0] }
            var handlers = known?.handlers ?? []
            var types = known?.types ?? TwoForms()
            let result = change(&handlers, &types)
            counts[Int(hash & 63)] += (handlers.isEmpty ? 0 : 1) - (known?.handlers.isEmpty == false ? 1 : 0)
            let changed = ProgramSubscribers(event, handlers, types)
            if let place { events[hash]![place] = changed } else { events[hash, default: []].append(changed) }
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
        /// Of one of the types. It may be gone by now.
        let object: plugin_object
        let isAsync: Bool
        /// The number of the last sticky event that it gets as one that was posted before it came.
        let lastMissed: Int
    }

    /// Made when they are first needed, and kept.
    typealias Types = TwoForms<ObjectTypeEntry>

    fileprivate let event: plugin_string
    /// In the order in which they came.
    let handlers: [Handler]
    fileprivate let types: Types
    /// What all of them do; nil where some are asynchronous.
    let synchronous: Endpoint?

    fileprivate init(_ event: String, _ handlers: [Handler], _ types: Types) {
        self.event = plugin_string(allocating: event)
        self.handlers = handlers
        self.types = types
        synchronous = handlers.contains(where: \.isAsync) ? nil : types.synchronous.map(EventHandlerBox.endpoint)
    }

    deinit { event.deallocate() }
}

extension plugin_string {
    /// A copy of a text, which may have zero bytes; to be deallocated.
    init(allocating text: String) {
        let bytes = UnsafeMutableBufferPointer<CChar>.allocate(capacity: text.utf8.count)
        _ = bytes.initialize(from: text.utf8.lazy.map(CChar.init(bitPattern:)))
        self.init(bytes: bytes.baseAddress, count: UInt64(bytes.count))
    }

    func deallocate() { bytes.deallocate() }
}
