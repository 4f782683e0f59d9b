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
    func place(_ number: plugin_bound_action) -> Unmanaged<Place>? {
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
