import CPluginHost
import Glibc
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

    init() {
        current = Atomic(UInt(bitPattern: Unmanaged.passRetained(Table()).toOpaque()))
    }

    deinit {
        Unmanaged<Table>.fromOpaque(UnsafeRawPointer(bitPattern: current.load(ordering: .acquiring))!).release()
    }

    /// Lends the table. `body` must be short and must not call a module: a change waits for it.
    @inline(__always)
    func read<Result>(_ lane: Lane, _ body: (borrowing Table) -> Result) -> Result {
        lane.epoch.pointee.store(Registry.epoch.load(ordering: .acquiring), ordering: .relaxed)
        if fence { atomicMemoryFence(ordering: .sequentiallyConsistent) } else { plugin_host_compiler_barrier() }
        let table = Unmanaged<Table>.fromOpaque(UnsafeRawPointer(bitPattern: current.load(ordering: .acquiring))!)
        defer { lane.epoch.pointee.store(0, ordering: .releasing) }
        return table._withUnsafeGuaranteedRef { body($0) }
    }

    /// The table, retained: for lists and status.
    var table: Table {
        writer.withLock { _ in
            Unmanaged<Table>.fromOpaque(UnsafeRawPointer(bitPattern: current.load(ordering: .acquiring))!)
                .takeUnretainedValue()
        }
    }

    /// Publishes a table. When this returns, every call that was found in the table before is entered in the records of
    /// running calls, and nobody reads that table any longer.
    func publish(_ table: Table) {
        writer.withLock { _ in
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
    }
}

