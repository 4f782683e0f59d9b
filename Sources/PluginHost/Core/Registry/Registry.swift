import CPluginHost
import Glibc
import PluginABI
import Synchronization

/// The published table. Readers take no lock, do not slow each other down and never wait. A writer publishes the next
/// table, waits until no thread reads the previous one, and frees it.
///
/// A reader notes in its thread context that it is reading, and clears the note a few dozen nanoseconds later. The note
/// must be stored before the table is loaded. A processor does not guarantee this order for free; the writer pays for
/// it (`plugin_host_fence_heavy`, as in userspace RCU, "sys_membarrier" flavour).
///
/// While modules start, there is a second table, the proposal, which will be published next. Only the starting modules
/// see it, so modules that are added together can call each other before anything else can call them. While starts go
/// on after the change that began them, there is a third one, which only these late modules see: the proposal, or else
/// the published table, with the late modules.
final class Registry: Sendable {
    private let current: Atomic<UInt>
    /// The proposed table, or 0.
    private let proposal = Atomic<UInt>(0)
    /// The table that late modules see, or 0.
    private let late = Atomic<UInt>(0)
    /// The late modules. Also the lock of writers.
    private let writer = Mutex(Late())

    private struct Late: Sendable {
        var generations: [Generation] = []
        /// Puts generations into the order of a table.
        var arrange: @Sendable ([Generation]) -> [Generation] = { $0 }
    }
    /// The number of changes of all registries, which share the thread contexts. A reader notes the number that it has
    /// seen.
    private static let epoch = Atomic<UInt64>(1)
    /// The functions that are called with each new table after it was published.
    private let observers = Mutex<[UInt64: @Sendable (Table) -> Void]>([:])

    /// A table that a thread reads.
    enum Kind: UInt32 {
        case published = 0
        case proposed = 1
        case late = 2
    }

    init() {
        current = Atomic(UInt(bitPattern: Unmanaged.passRetained(Table()).toOpaque()))
    }

    deinit {
        setLate([])
        propose(nil)
        Unmanaged<Table>.fromOpaque(UnsafeRawPointer(bitPattern: current.load(ordering: .acquiring))!).release()
    }

    /// Lends the table. `body` must be short and must not call a module, because a change of the table waits for it.
    ///
    /// - Parameter isPublished: Whether the thread context is known to see the published table, not the proposal.
    @inline(__always)
    func read<Result>(_ thread: ThreadContext, isPublished: Bool = false, _ body: (Table) -> Result) -> Result {
        thread.epoch.pointee.store(Registry.epoch.load(ordering: .acquiring), ordering: .relaxed)
        plugin_host_fence_light()
        let word =
            !isPublished && !thread.seesPublished ? proposedOrCurrent(thread.table) : current.load(ordering: .acquiring)
        let table = Unmanaged<Table>.fromOpaque(UnsafeRawPointer(bitPattern: word)!)
        defer { thread.epoch.pointee.store(0, ordering: .releasing) }
        return table._withUnsafeGuaranteedRef { body($0) }
    }

    private func proposedOrCurrent(_ kind: Kind) -> UInt {
        let late = kind == .late ? late.load(ordering: .acquiring) : 0
        if late != 0 { return late }
        let proposed = proposal.load(ordering: .acquiring)
        return proposed != 0 ? proposed : current.load(ordering: .acquiring)
    }

    /// Returns the table, retained.
    @inline(__always)
    func current(_ thread: ThreadContext) -> Table { read(thread) { $0 } }

    /// The table, for lists and status.
    var table: Table { ThreadContext.current.map(current) ?? Table() }

    /// Builds the next table from the current one and publishes it. When this function returns, every call that was
    /// found in the previous table has an entry in the records of running calls, and no thread still reads that table.
    func update(_ next: (Table) throws(PluginError) -> Table) throws(PluginError) {
        try writer.withLock { (late) throws(PluginError) in
            replace(current, with: try next(published))
            updateLate(late)
        }
        tellObservers()
    }

    /// Shows `table` to starting modules as the proposed table; `nil` if a proposal is no longer needed.
    func propose(_ table: Table?) {
        writer.withLock { late in
            guard table != nil || proposal.load(ordering: .relaxed) != 0 else { return }
            replace(proposal, with: table)
            updateLate(late)
        }
    }

    /// Sets which modules are late, and shows them a table with the late modules and everything that is published or
    /// proposed.
    ///
    /// - Parameter arrange: Puts generations into the order of a table.
    func setLate(_ generations: [Generation], _ arrange: @escaping @Sendable ([Generation]) -> [Generation] = { $0 }) {
        writer.withLock { late in
            guard !generations.elementsEqual(late.generations, by: ===) else { return }
            late = Late(generations: generations, arrange: arrange)
            updateLate(late)
        }
    }

    /// Makes the table for late modules. Each of them takes the place of another generation of its module; one that
    /// claims a target of another module is left out, since it will be refused. Only for the writer.
    private func updateLate(_ modules: Late) {
        guard !modules.generations.isEmpty else {
            if late.load(ordering: .relaxed) != 0 { replace(late, with: nil) }
            return
        }
        let base = proposed ?? published
        let names = Set(modules.generations.map(\.name))
        let others = base.generations.filter { !names.contains($0.name) }
        var targets = Set(others.flatMap(\.targets.keys))
        let fitting = modules.generations.filter { generation in
            guard targets.isDisjoint(with: generation.targets.keys) else { return false }
            targets.formUnion(generation.targets.keys)
            return true
        }
        replace(late, with: base.changed { $0.generations = modules.arrange(others + fitting) })
    }

    /// The published table. Only for the writer.
    private var published: Table {
        Unmanaged<Table>.fromOpaque(UnsafeRawPointer(bitPattern: current.load(ordering: .acquiring))!)
            .takeUnretainedValue()
    }

    /// The proposed table. Only for the writer.
    private var proposed: Table? {
        UnsafeRawPointer(bitPattern: proposal.load(ordering: .acquiring)).map {
            Unmanaged<Table>.fromOpaque($0).takeUnretainedValue()
        }
    }

    /// Replaces one table with another, waits until no thread reads the old one, and releases it. Only for the writer.
    private func replace(_ slot: borrowing Atomic<UInt>, with table: Table?) {
        let new = table.map { UInt(bitPattern: Unmanaged.passRetained($0).toOpaque()) } ?? 0
        let old = slot.exchange(new, ordering: .acquiringAndReleasing)
        Self.waitForReaders()
        if let old = UnsafeRawPointer(bitPattern: old) { Unmanaged<Table>.fromOpaque(old).release() }
    }

    /// Waits until no thread reads a table that it loaded before, or anything else that it loaded while it read a table.
    static func waitForReaders() {
        let changed = Registry.epoch.add(1, ordering: .sequentiallyConsistent).newValue
        plugin_host_fence_heavy()
        for thread in ThreadContext.all {
            while case let seen = thread.epoch.pointee.load(ordering: .acquiring), seen != 0, seen < changed {
                sched_yield()
            }
        }
    }

    /// Calls `observer` with the current table and with each table that is published, until the observer is removed.
    /// Calls may overlap, and one may still arrive after the removal. If something must be done once, it must be done
    /// by the caller to which ``stopObserving(_:)`` returns true.
    func observe(_ id: UInt64, _ observer: @escaping @Sendable (Table) -> Void) {
        observers.withLock { $0[id] = observer }
        observer(table)
    }

    /// Removes an observer. Returns whether it was still registered.
    func stopObserving(_ id: UInt64) -> Bool { observers.withLock { $0.removeValue(forKey: id) } != nil }

    private func tellObservers() {
        let observers = observers.withLock { Array($0.values) }
        guard !observers.isEmpty else { return }
        let table = table
        for observer in observers { observer(table) }
    }

    /// Publishes a table with these modules; everything else stays as it is.
    ///
    /// - Parameters:
    ///   - known: The registered modules; `nil` if they stay the same.
    ///   - routes: A change of the routes that may be the one that the modules bring about.
    ///   - absences: The unavailable modules; `nil` if they stay the same.
    func publish(
        _ generations: [Generation], _ known: KnownModules? = nil, routes: RouteChange? = nil,
        absences: UnavailableModules? = nil, isStopped: Bool = false
    ) {
        try? update { table in
            table.changed(sharing: proposed, routes: routes) { contents in
                contents.generations = generations
                if let absences { contents.absences = absences }
                if let known { contents.known = known }
                contents.isStopped = isStopped
            }
        }
    }
}
