import Glibc
import PluginABI
import Synchronization

/// The names that callers of one host have bound. Never freed.
///
/// A bound action is the number of a `Binding`. Equal names share a binding and no binding belongs to a caller, so
/// nothing is reference-counted and a call writes nothing.
final class BoundActions: Sendable {
    /// The bound names, and the endpoint that they lead to in one table. This is an inline cache: the number of the
    /// table for which the cached endpoint is valid is stored beside it.
    final class Binding: @unchecked Sendable {  // The names point to memory that is never freed.
        let target: plugin_string
        let action: plugin_string
        /// The number of the table; 0 while `endpoint` changes. Written under the lock. Apart from these zeros, it only
        /// increases.
        private let table = Atomic<UInt64>(0)
        private let endpoint = Atomic<UInt>(0)
        private let lock = Mutex(())

        fileprivate init(_ names: Names) {
            (target, action) = (.immortal(names.target), .immortal(names.action))
        }

        /// Returns the endpoint that the names lead to in `table`; valid only while the caller reads that table.
        @inline(__always)
        func endpoint(in table: Table) -> Unmanaged<Endpoint>? {
            // The number is read before and after the endpoint. Apart from the zeros in between, the number only grows,
            // so if both reads give the same one, the endpoint did not change in the meantime.
            let before = self.table.load(ordering: .acquiring)
            let found = endpoint.load(ordering: .acquiring)
            guard before == table.number, self.table.load(ordering: .relaxed) == before else { return lookUp(table) }
            return UnsafeRawPointer(bitPattern: found).map(Unmanaged.fromOpaque)
        }

        @inline(never)
        private func lookUp(_ table: Table) -> Unmanaged<Endpoint>? {
            let found = table.find(target, action)
            // If another thread has the lock, that thread updates the cache: a reader of the table must not wait.
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
    /// The bindings by number, each a retained reference. Zeroed memory, which costs nothing until it is used.
    private nonisolated(unsafe) let bindings: UnsafeMutablePointer<Atomic<UInt>>  // Its elements are atomic.

    init() {
        // Atomic<UInt> has the layout of UInt.
        bindings = calloc(Self.limit, MemoryLayout<Atomic<UInt>>.stride)!.assumingMemoryBound(to: Atomic<UInt>.self)
    }

    /// Returns the number of these names; 0 if more than a hundred thousand other names are bound.
    func bind(_ target: String, _ action: String) -> plugin_bound_action {
        numbers.withLock { numbers in
            let names = Names(target: target, action: action)
            if let number = numbers[names] { return number }
            let number = numbers.count + 1
            guard number < Self.limit else { return 0 }
            let binding = Unmanaged.passRetained(Binding(names)).toOpaque()
            bindings[number].store(UInt(bitPattern: binding), ordering: .releasing)
            numbers[names] = UInt64(number)
            return UInt64(number)
        }
    }

    /// Returns the binding with this number; `nil` if no such number was assigned.
    @inline(__always)
    func binding(_ number: plugin_bound_action) -> Unmanaged<Binding>? {
        guard number < UInt64(Self.limit) else { return nil }
        return UnsafeRawPointer(bitPattern: bindings[Int(number)].load(ordering: .acquiring)).map(Unmanaged.fromOpaque)
    }
}

extension BoundActions {
    /// Returns the endpoint that a bound action leads to in `table`; valid only while the caller reads that table.
    @inline(__always)
    func endpoint(_ number: plugin_bound_action, in table: Table) -> Unmanaged<Endpoint>? {
        binding(number)?._withUnsafeGuaranteedRef { $0.endpoint(in: table) }
    }
}
