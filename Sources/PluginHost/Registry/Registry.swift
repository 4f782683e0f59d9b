import CPluginHost
import Glibc
import PluginABI
import Synchronization

/// The published table. Readers take no lock, do not slow each other down and never wait; a writer publishes the next
/// table, waits until nobody reads the one before, and frees it.
///
/// How: a reader notes in its lane that it reads, and forgets it a few dozen nanoseconds later. The note and the load of
/// the table need an order that a processor does not give for free; the writer pays for it, with `membarrier(2)`, which
/// makes every running thread of the process pass a barrier (as in userspace RCU, "sys_membarrier" flavour). Where the
/// kernel refuses that, readers pass a barrier of their own.
final class Registry: Sendable {
    private let current: Atomic<UInt>
    private let writer = Mutex(())
    /// Counts the changes of all registries, which share the lanes; a reader notes the one that it has seen.
    private static let epoch = Atomic<UInt64>(1)
    private static let readersFence = plugin_host_membarrier_prepare() != 0
    private let fence = Registry.readersFence
    /// Who is told of each new table, after it was published.
    private let observers = Mutex<[UInt64: @Sendable (Table) -> Void]>([:])

    init() {
        current = Atomic(UInt(bitPattern: Unmanaged.passRetained(Table()).toOpaque()))
    }

    deinit {
        Unmanaged<Table>.fromOpaque(UnsafeRawPointer(bitPattern: current.load(ordering: .acquiring))!).release()
    }

    /// Lends the table. `body` must be short and must not call a module: a change waits for it.
    @inline(__always)
    func read<Result>(_ lane: Lane, _ body: (Table) -> Result) -> Result {
        lane.epoch.pointee.store(Registry.epoch.load(ordering: .acquiring), ordering: .relaxed)
        if fence { atomicMemoryFence(ordering: .sequentiallyConsistent) } else { plugin_host_compiler_barrier() }
        let table = Unmanaged<Table>.fromOpaque(UnsafeRawPointer(bitPattern: current.load(ordering: .acquiring))!)
        defer { lane.epoch.pointee.store(0, ordering: .releasing) }
        return table._withUnsafeGuaranteedRef { body($0) }
    }

    /// The table, retained.
    @inline(__always)
    func current(_ lane: Lane) -> Table { read(lane) { $0 } }

    /// The table, for lists and status.
    var table: Table { Lane.current.map(current) ?? Table() }

    /// Makes the next table of the present one and publishes it. When this returns, every call that was found in the
    /// table before is entered in the records of running calls, and nobody reads that table any longer.
    func update(_ next: (Table) throws(PluginError) -> Table) throws(PluginError) {
        try writer.withLock { (_) throws(PluginError) in
            let present = Unmanaged<Table>.fromOpaque(UnsafeRawPointer(bitPattern: current.load(ordering: .acquiring))!)
            let table = try next(present.takeUnretainedValue())
            let new = UInt(bitPattern: Unmanaged.passRetained(table).toOpaque())
            let old = current.exchange(new, ordering: .acquiringAndReleasing)
            let changed = Registry.epoch.add(1, ordering: .sequentiallyConsistent).newValue
            plugin_host_membarrier()
            for lane in Lane.all {
                while case let seen = lane.epoch.pointee.load(ordering: .acquiring), seen != 0, seen < changed {
                    sched_yield()
                }
            }
            Unmanaged<Table>.fromOpaque(UnsafeRawPointer(bitPattern: old)!).release()
        }
        tellObservers()
    }

    /// Calls `observer` with the table as it is and with each that is published, until it is removed. Calls may overlap,
    /// and one may come late: who removes it is the last to act.
    func observe(_ id: UInt64, _ observer: @escaping @Sendable (Table) -> Void) {
        observers.withLock { $0[id] = observer }
        observer(table)
    }

    /// Returns whether it was still there.
    func stopObserving(_ id: UInt64) -> Bool { observers.withLock { $0.removeValue(forKey: id) } != nil }

    private func tellObservers() {
        let observers = observers.withLock { Array($0.values) }
        guard !observers.isEmpty else { return }
        let table = table
        for observer in observers { observer(table) }
    }

    /// Publishes a table with these modules, and the other things as they are.
    func publish(_ generations: [Generation], isStopped: Bool = false) {
        try? update { Table(generations, routes: $0.routes, interception: $0.interception, isStopped: isStopped) }
    }
}
