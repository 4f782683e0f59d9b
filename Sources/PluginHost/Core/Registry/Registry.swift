import CPluginHost
import Glibc
import PluginABI
import Synchronization

/// The published table. Readers take no lock, do not slow each other down and never wait; a writer publishes the next
/// table, waits until nobody reads the one before, and frees it.
///
/// How: a reader notes in its thread context that it reads, and forgets it a few dozen nanoseconds later. The note and the load of
/// the table need an order that a processor does not give for free; the writer pays for it (`plugin_host_fence_heavy`, as
/// in userspace RCU, "sys_membarrier" flavour).
///
/// While modules start, there is a second table beside it, the one that will be: what starts sees that one, and nobody
/// else does. So modules that come together can call each other before anybody can call them.
final class Registry: Sendable {
    private let current: Atomic<UInt>
    /// The table that will be, or 0.
    private let proposal = Atomic<UInt>(0)
    private let writer = Mutex(())
    /// Counts the changes of all registries, which share the thread contexts; a reader notes the one that it has seen.
    private static let epoch = Atomic<UInt64>(1)
    /// Who is told of each new table, after it was published.
    private let observers = Mutex<[UInt64: @Sendable (Table) -> Void]>([:])

    init() {
        current = Atomic(UInt(bitPattern: Unmanaged.passRetained(Table()).toOpaque()))
    }

    deinit {
        propose(nil)
        Unmanaged<Table>.fromOpaque(UnsafeRawPointer(bitPattern: current.load(ordering: .acquiring))!).release()
    }

    /// Lends the table. `body` must be short and must not call a module: a change waits for it.
    ///
    /// - Parameter isPublished: Whether it is known that the thread context sees the published table, not the proposal.
    @inline(__always)
    func read<Result>(_ thread: ThreadContext, isPublished: Bool = false, _ body: (Table) -> Result) -> Result {
        thread.epoch.pointee.store(Registry.epoch.load(ordering: .acquiring), ordering: .relaxed)
        plugin_host_fence_light()
        let word = !isPublished && thread.seesProposal ? proposedOrCurrent : current.load(ordering: .acquiring)
        let table = Unmanaged<Table>.fromOpaque(UnsafeRawPointer(bitPattern: word)!)
        defer { thread.epoch.pointee.store(0, ordering: .releasing) }
        return table._withUnsafeGuaranteedRef { body($0) }
    }

    private var proposedOrCurrent: UInt {
        let proposed = proposal.load(ordering: .acquiring)
        return proposed != 0 ? proposed : current.load(ordering: .acquiring)
    }

    /// The table, retained.
    @inline(__always)
    func current(_ thread: ThreadContext) -> Table { read(thread) { $0 } }

    /// The table, for lists and status.
    var table: Table { ThreadContext.current.map(current) ?? Table() }

    /// Makes the next table of the present one and publishes it. When this returns, every call that was found in the
    /// table before is entered in the records of running calls, and nobody reads that table any longer.
    func update(_ next: (Table) throws(PluginError) -> Table) throws(PluginError) {
        try writer.withLock { (_) throws(PluginError) in
            let present = Unmanaged<Table>.fromOpaque(UnsafeRawPointer(bitPattern: current.load(ordering: .acquiring))!)
            let table = try next(present.takeUnretainedValue())
            replace(current, with: table)
        }
        tellObservers()
    }

    /// Shows what starts the table that will be; nil when it is no longer needed.
    func propose(_ table: Table?) {
        writer.withLock { _ in
            guard table != nil || proposal.load(ordering: .relaxed) != 0 else { return }
            replace(proposal, with: table)
        }
    }

    /// The table that will be. Only the writer's.
    private var proposed: Table? {
        UnsafeRawPointer(bitPattern: proposal.load(ordering: .acquiring)).map {
            Unmanaged<Table>.fromOpaque($0).takeUnretainedValue()
        }
    }

    /// Puts a table in the place of another, waits until nobody reads that, and lets go of it. Only the writer's.
    private func replace(_ place: borrowing Atomic<UInt>, with table: Table?) {
        let new = table.map { UInt(bitPattern: Unmanaged.passRetained($0).toOpaque()) } ?? 0
        let old = place.exchange(new, ordering: .acquiringAndReleasing)
        let changed = Registry.epoch.add(1, ordering: .sequentiallyConsistent).newValue
        plugin_host_fence_heavy()
        for thread in ThreadContext.all {
            while case let seen = thread.epoch.pointee.load(ordering: .acquiring), seen != 0, seen < changed {
                sched_yield()
            }
        }
        if let old = UnsafeRawPointer(bitPattern: old) { Unmanaged<Table>.fromOpaque(old).release() }
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
    func publish(_ generations: [Generation], absences: UnavailableModules? = nil, isStopped: Bool = false) {
        try? update { table in
            table.changed(sharing: proposed) { contents in
                contents.generations = generations
                if let absences { contents.absences = absences }
                contents.isStopped = isStopped
            }
        }
    }
}
