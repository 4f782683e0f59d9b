import CPluginABI
import CPluginHost
import Glibc
import PluginABI
import Synchronization

/// The names that callers of one host have bound. Never freed.
///
/// A bound action is the number of a place. Equal names share a place, and none belongs to a caller: so there is nothing
/// to count, and nothing that a call would have to write.
final class BoundActions: Sendable {
    /// Names, and the endpoint that they lead to in one table. (An inline cache: beside the answer stands the state of
    /// the world in which it is true.)
    final class Place: @unchecked Sendable {  // The names point to memory that is never freed.
        let target: plugin_string
        let action: plugin_string
        /// The number of the table; 0 while `endpoint` changes. Written under the lock, and never back to an older one.
        private let table = Atomic<UInt64>(0)
        private let endpoint = Atomic<UInt>(0)
        private let lock = Mutex(())

        fileprivate init(_ names: Names) {
            (target, action) = (.immortal(names.target), .immortal(names.action))
        }

        /// What the names lead to in a table; only while the caller reads it.
        @inline(__always)
        func endpoint(in table: Table) -> Unmanaged<Endpoint>? {
            // The number is read on both sides of the endpoint. It grows, but for the zeros between: so one that is
            // there twice has been there all the time.
            let before = self.table.load(ordering: .acquiring)
            let found = endpoint.load(ordering: .acquiring)
            guard before == table.number, self.table.load(ordering: .relaxed) == before else { return lookUp(table) }
            return UnsafeRawPointer(bitPattern: found).map(Unmanaged.fromOpaque)
        }

        @inline(never)
        private func lookUp(_ table: Table) -> Unmanaged<Endpoint>? {
            let found = table.find(target, action)
            // Whoever finds it locked leaves it to the other one: a reader of the table must not wait.
            _ = lock.withLockIfAvailable { _ in
                guard self.table.load(ordering: .relaxed) < table.number else { return }
                self.table.store(0, ordering: .relaxed)
                endpoint.store(found.map { UInt(bitPattern: $0.toOpaque()) } ?? 0, ordering: .releasing)
                self.table.store(table.number, ordering: .releasing)
            }
            return found
        }
    }

    fileprivate struct Names: Hashable {
        let target: String
        let action: String
    }

    private static let limit = 1 << 17
    private let numbers = Mutex<[Names: plugin_bound_action]>([:])
    /// The places, each a retained reference, by number; zeroed memory that costs nothing before it is used.
    private nonisolated(unsafe) let places: UnsafeMutablePointer<Atomic<UInt>>  // Its elements are atomic.

    init() {
        // Atomic<UInt> has the layout of UInt.
        places = calloc(Self.limit, MemoryLayout<Atomic<UInt>>.stride)!.assumingMemoryBound(to: Atomic<UInt>.self)
    }

    /// The number of these names; 0 when there are a hundred thousand others.
    func bind(_ target: String, _ action: String) -> plugin_bound_action {
        numbers.withLock { numbers in
            let names = Names(target: target, action: action)
            if let number = numbers[names] { return number }
            let number = numbers.count + 1
            guard number < Self.limit else { return 0 }
            let place = Unmanaged.passRetained(Place(names)).toOpaque()
            places[number].store(UInt(bitPattern: place), ordering: .releasing)
            numbers[names] = UInt64(number)
            return UInt64(number)
        }
    }

    /// The place with a number; nil for a number that was not given out.
    @inline(__always)
    fileprivate func place(_ number: plugin_bound_action) -> Unmanaged<Place>? {
        guard number < UInt64(Self.limit) else { return nil }
        return UnsafeRawPointer(bitPattern: places[Int(number)].load(ordering: .acquiring)).map(Unmanaged.fromOpaque)
    }
}

extension BoundActions {
    /// What a number leads to in a table; only while the caller reads it.
    @inline(__always)
    func endpoint(_ number: plugin_bound_action, in table: Table) -> Unmanaged<Endpoint>? {
        place(number)?._withUnsafeGuaranteedRef { $0.endpoint(in: table) }
    }
}

extension Dispatcher {
    /// Names that were bound, where there is more to do than to call: as by target and action.
    func callBound(
        _ number: plugin_bound_action, _ entries: UnsafeBufferPointer<plugin_entry>, _ call: Call, _ lane: Lane,
        _ record: CallRecord
    ) throws(PluginError) -> plugin_token {
        guard let place = boundActions.place(number) else {
            throw PluginError(.invalidValue, "There is no bound action with the number \(number).")
        }
        let (target, action) = place._withUnsafeGuaranteedRef { ($0.target, $0.action) }
        return try self.call(target, action, entries, call, lane, record)
    }

    /// The way of almost every typed call of a bound action, as ``dispatch(_:parent:from:mode:to:)`` is for requests.
    ///
    /// - Returns: Whether the result is there; if not, the receiver has been told. Nil, with nothing done, where there is
    ///   more to do than to call.
    @inline(__always)
    fileprivate func callBound(
        _ number: plugin_bound_action, _ arguments: UnsafeBufferPointer<plugin_value>, from caller: Generation,
        into result: UnsafeMutablePointer<plugin_value>, or receiver: Receiver
    ) -> Bool? {
        guard let lane = Lane.current, let record = lane.next, seesPublished(caller, lane) else { return nil }
        let found = enter(record, lane, parent: lane.currentCall, from: caller) {
            boundActions.endpoint(number, in: $0)
        }
        guard let found else { return nil }
        let isThere = callStraight(
            found, arguments, areTrusted: caller.isProgram, into: result, or: receiver, lane, record)
        if let isThere { return isThere }
        record.vacate()
        return nil
    }
}

extension HostTable {
    /// The extension of bound actions.
    nonisolated(unsafe) static let bound: UnsafePointer<plugin_bound> = {
        let bound = UnsafeMutablePointer<plugin_bound>.allocate(capacity: 1)
        bound.initialize(
            to: plugin_bound(
                size: UInt32(MemoryLayout<plugin_bound>.size), reserved: 0,
                bind: { host, target, action in
                    guard (try? target.check("")) != nil, (try? action.check("")) != nil else { return 0 }
                    return caller(host).takeUnretainedValue().dispatcher.boundActions.bind(target.text, action.text)
                },
                perform: { performBound($0, $1, $2, $3, $4, $5, $6) }))
        return UnsafePointer(bound)
    }()

    /// A function of its own: a closure as small as this would become part of the function that the compiler makes of it
    /// for C, into which it inlines no functions of C.
    @inline(never)
    private static func performBound(
        _ host: UnsafePointer<plugin_host>?, _ number: plugin_bound_action, _ arguments: UnsafePointer<plugin_value>?,
        _ count: UInt32, _ result: UnsafeMutablePointer<plugin_value>?, _ completion: plugin_completion?,
        _ data: UnsafeMutableRawPointer?
    ) -> Int32 {
        let receiver = Dispatcher.Receiver(completion: completion ?? ignore, data: data)
        @inline(__always) func call(_ caller: Generation) -> Bool? {
            guard let result, arguments != nil || count == 0 else { return nil }
            return caller.dispatcher.callBound(
                number, UnsafeBufferPointer(start: arguments, count: Int(count)), from: caller, into: result,
                or: receiver)
        }
        if let isThere = caller(host)._withUnsafeGuaranteedRef(call) { return isThere ? 1 : 0 }
        performRequest(host, number, arguments, count, receiver)
        return 0
    }

    /// Performs a bound action like any other call.
    @inline(never)
    private static func performRequest(
        _ host: UnsafePointer<plugin_host>?, _ number: plugin_bound_action, _ arguments: UnsafePointer<plugin_value>?,
        _ count: UInt32, _ receiver: Dispatcher.Receiver
    ) {
        var request = plugin_request()
        request.size = UInt32(MemoryLayout<plugin_request>.size)
        request.address = PLUGIN_ADDRESS_BOUND
        request.object = number
        request.parameter_count = UInt64(count)
        // Of a module that is refused without parameters; the program does not ask for it.
        guard let arguments, count <= plugin_request.parametersMax else {
            return perform(host, 0, &request, receiver.completion, receiver.data)
        }
        withUnsafeTemporaryAllocation(of: plugin_entry.self, capacity: Int(count)) { entries in
            for index in entries.indices {
                entries.initializeElement(at: index, to: plugin_entry(key: plugin_string(), value: arguments[index]))
            }
            request.parameters = UnsafePointer(entries.baseAddress)
            perform(host, 0, &request, receiver.completion, receiver.data)
        }
    }
}
