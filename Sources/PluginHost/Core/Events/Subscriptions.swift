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
    private let state: Mutex<State>
    /// A Bloom filter with one hash: one bit for each event that the program handles, by the hash of its name. For most
    /// events that the program does not handle, the bit is clear, and reading it needs no lock.
    private let handled = Atomic<UInt64>(0)
    /// The current ``ProgramIndex``, which readers of the table may use without a lock.
    private let index: Atomic<UInt>

    fileprivate struct State {
        /// Each event to which the program has ever subscribed.
        var index: ProgramIndex
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

    init() {
        let empty = ProgramIndex()
        state = Mutex(State(index: empty))
        index = Atomic(empty.retained)
    }

    deinit { ProgramIndex.release(index.load(ordering: .acquiring)) }

    /// Returns the program's subscriptions to an event; for a sticky event, those that existed before it was posted.
    func handlers(of event: String, number: Int? = nil) -> [plugin_object] {
        if handled.load(ordering: .acquiring) == 0 { return [] }
        let known = state.withLock { $0.index.find(event)?.handlers }
        return (known ?? []).filter { number ?? .max > $0.lastMissed }.map(\.object)
    }

    /// Returns the program as a subscriber to an event; `nil` if the program does not handle the event. Only for
    /// readers of a table: within `Registry.read`, for which the object lives.
    ///
    /// - Parameter hash: The hash of the event's name.
    @inline(__always)
    func program(for event: plugin_string, hash: UInt64) -> Unmanaged<ProgramSubscribers>? {
        handled.load(ordering: .acquiring) & 1 << (hash & 63) == 0 ? nil : findProgram(for: event)
    }

    @inline(never)
    private func findProgram(for event: plugin_string) -> Unmanaged<ProgramSubscribers>? {
        ProgramIndex.find(RawText(event), in: index.load(ordering: .acquiring))
    }

    /// Changes what is stored of events, and shows it to readers.
    private func change<Result: Sendable>(_ body: (inout State) -> Result) -> Result {
        let (result, old) = state.withLock { state in
            let result = body(&state)
            handled.store(state.bits, ordering: .releasing)
            return (result, index.exchange(state.index.retained, ordering: .acquiringAndReleasing))
        }
        Registry.waitForReaders()
        ProgramIndex.release(old)
        return result
    }

    /// Returns the type of the handlers of an event, created once.
    func type(of event: String, isAsync: Bool, _ make: () -> ObjectTypeEntry) -> ObjectTypeEntry {
        let known = state.withLock { state in
            state.index.find(event).flatMap { isAsync ? $0.types.asynchronous : $0.types.synchronous }
        }
        return known ?? change { state in state.change(event) { _, types in types.form(isAsync: isAsync, make) } }
    }

    /// - Returns: The last sticky event of this name; `nil` if none has been posted.
    func add(_ handler: plugin_object, isAsync: Bool, to event: String) -> StickyEvent? {
        change { state in
            let handler = ProgramSubscribers.Handler(
                object: handler, isAsync: isAsync, lastMissed: state.stickyCount)
            state.change(event) { handlers, _ in handlers.append(handler) }
            return state.sticky.first { $0.isNamed(event) }
        }
    }

    func remove(_ handler: plugin_object, from event: String) {
        change { state in state.change(event) { handlers, _ in handlers.removeAll { $0.object == handler } } }
    }

    /// Stores a sticky event, replacing an earlier one of the same name.
    ///
    /// - Returns: The number of the event. It determines whether a subscriber receives the event from this post or when
    ///   the subscriber is added, and so only once.
    func keep(_ name: String, _ parameters: Parameters) -> Int {
        state.withLock { state in
            state.sticky.removeAll { $0.isNamed(name) }
            state.stickyCount += 1
            state.sticky.append(StickyEvent(number: state.stickyCount, name: name, parameters: parameters))
            return state.stickyCount
        }
    }

    /// Returns the sticky events that were posted before a module was added. The module receives all later ones when
    /// they are posted.
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
        let known = index.find(event)
        var handlers = known?.handlers ?? []
        var types = known?.types ?? TwoForms()
        let result = change(&handlers, &types)
        let hash = event.withPluginString { NameTable.hash($0) }
        counts[Int(hash & 63)] += (handlers.isEmpty ? 0 : 1) - (known?.handlers.isEmpty == false ? 1 : 0)
        index = ProgramIndex(index, with: ProgramSubscribers(handlers, types), for: event)
        return result
    }
}

extension EventBoard.StickyEvent {
    fileprivate func isNamed(_ other: String) -> Bool { name.utf8.elementsEqual(other.utf8) }
}

/// The handlers of the program for one event.
final class ProgramSubscribers: Sendable {
    struct Handler {
        /// An object of one of the types. It may no longer exist.
        let object: plugin_object
        let isAsync: Bool
        /// The number of the last sticky event that was posted before the handler was added.
        let lastMissed: Int
    }

    /// The types of the handlers, created when they are first needed and kept.
    typealias Types = TwoForms<ObjectTypeEntry>

    /// The handlers in the order in which they were added.
    let handlers: [Handler]
    fileprivate let types: Types
    /// The endpoint of all of them, which lives as long as the host; `nil` if some are asynchronous.
    let synchronous: Endpoint?

    fileprivate init(_ handlers: [Handler], _ types: Types) {
        (self.handlers, self.types) = (handlers, types)
        synchronous = handlers.contains(where: \.isAsync) ? nil : types.synchronous.map(EventHandlerBox.endpoint)
    }
}

/// The handlers of the program, by event. Immutable, so that readers of the table need no lock.
private final class ProgramIndex: @unchecked Sendable {
    // Changed in init only, hence @unchecked Sendable, and hence no checks of exclusive access.
    @exclusivity(unchecked) private var events = PersistentMap<Unmanaged<ProgramSubscribers>>()

    init() {}

    /// Makes an index that differs from another one in one event.
    init(_ before: ProgramIndex, with subscribers: ProgramSubscribers, for event: String) {
        events = PersistentMap(copying: before.events)
        event.withRawText { events.update($0) { $0 = subscribers } }
    }

    func find(_ event: String) -> ProgramSubscribers? { event.withRawText { events.find($0)?.takeUnretainedValue() } }

    // The address of an index, with a reference that its owner releases.

    var retained: UInt { UInt(bitPattern: Unmanaged.passRetained(self).toOpaque()) }

    static func release(_ address: UInt) {
        Unmanaged<ProgramIndex>.fromOpaque(UnsafeRawPointer(bitPattern: address)!).release()
    }

    /// Returns the handlers of an event; `nil` if it has never had any.
    @inline(__always)
    static func find(_ event: RawText, in address: UInt) -> Unmanaged<ProgramSubscribers>? {
        Unmanaged<ProgramIndex>.fromOpaque(UnsafeRawPointer(bitPattern: address)!)._withUnsafeGuaranteedRef {
            $0.events.find(event)
        }
    }
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
