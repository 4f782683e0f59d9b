import PluginABI
import Synchronization

/// Watches how many of the memory maps that the kernel allows a process (`vm.max_map_count`) are used.
///
/// Images are never unmapped, so each replacement takes some, for as long as the process lives. Without maps there are no
/// new threads and no memory, and calls that need either never end: so libraries are opened only as long as a reserve
/// remains.
final class MapsBudget: Sendable {
    /// Of the maps that are allowed, in per cent: from here on the host warns.
    static let warningShare = 80
    /// From here on no library is opened.
    static let openingShare = 90
    /// The maps that one module takes at most, with what it brings along; most take five.
    private static let mapsOfModule = 64

    /// Modules map memory themselves: the count is not trusted for longer, in nanoseconds, nor counted again before a
    /// hundred times as long as it takes.
    private static let trust: Int64 = 1_000_000_000

    /// How many libraries may be opened while another thread counts: they take a sixth of the smallest reserve at most.
    private static let uncheckedWhileCounting = 16

    private struct State {
        /// How many modules may come before the maps are counted again.
        var unchecked = 0
        /// When they are counted again in any case. CLOCK_MONOTONIC nanoseconds.
        var next: Int64 = 0
        var warning: PluginError?
    }

    private let state = Mutex(State())
    private let limit: @Sendable () -> Int?
    private let count: @Sendable () -> Int?

    /// That of the process.
    static let shared = MapsBudget()

    init(
        limit: @escaping @Sendable () -> Int? = { ProcessLimits.mapsLimit },
        count: @escaping @Sendable () -> Int? = { ProcessLimits.countMaps() }
    ) {
        self.limit = limit
        self.count = count
    }

    /// Set once the share of the warning was reached.
    var warning: PluginError? { state.withLock { $0.warning } }

    /// Takes note that a library is to be opened. The maps are counted the more often the fewer are left.
    ///
    /// - Throws: `outOfResources` when no reserve would remain.
    func require(for file: String) throws(PluginError) {
        let start = monotonicNow()
        let isCheckDue = state.withLock { state in
            state.unchecked -= 1
            guard state.unchecked < 0 || start >= state.next else { return false }
            // Hosts of one process that open libraries at the same time count once for all of them.
            state.unchecked = Self.uncheckedWhileCounting
            state.next = start + Self.trust
            return true
        }
        guard isCheckDue, let limit = limit(), let used = count() else { return }
        let end = monotonicNow()
        let warned = limit * Self.warningShare / 100
        let refused = limit * Self.openingShare / 100
        state.withLock { state in
            state.next = end + max(Self.trust, 100 * (end - start))
            state.unchecked = ((used < warned ? warned : refused) - used) / Self.mapsOfModule
            if used >= warned, state.warning == nil { state.warning = Self.warning(used, limit) }
        }
        guard used >= refused else { return }
        throw PluginError(
            .outOfResources,
            "\(file) is not opened: \(Self.usage(used, limit)); the last \(100 - Self.openingShare) per cent are kept for "
                + "the threads and the memory of what runs. \(Self.remedy(limit))")
    }

    private static func warning(_ used: Int, _ limit: Int) -> PluginError {
        PluginError(
            .outOfResources,
            "\(usage(used, limit)). From \(openingShare) per cent on no more modules are opened. \(remedy(limit))")
    }

    private static func usage(_ used: Int, _ limit: Int) -> String {
        "this process uses \(used) of the \(limit) memory maps that vm.max_map_count allows it"
    }

    private static func remedy(_ limit: Int) -> String {
        "Restart the host, which gives back those of replaced modules, or raise the limit: sysctl -w "
            + "vm.max_map_count=\(limit * 2)"
    }
}
