import PluginABI
import Synchronization

/// The memory maps that the kernel allows a process (`vm.max_map_count`), and how many of them are in use.
///
/// Images are never unmapped, so each replacement uses more maps for the rest of the process. Without free maps the
/// process can neither start threads nor allocate memory, and calls that need either never end. Libraries are therefore
/// opened only while a reserve remains.
final class MapsBudget: Sendable {
    /// The percentage of the allowed maps at which the host warns.
    static let warningShare = 80
    /// The percentage of the allowed maps at which the host stops opening libraries.
    static let openingShare = 90
    /// The largest number of maps that one module uses, including the libraries it brings along. Most modules use five.
    private static let mapsOfModule = 64

    /// How long a count is trusted, in nanoseconds, since modules map memory themselves. It is trusted longer if
    /// counting takes long: for at least a hundred times the duration of the count.
    private static let trust: Int64 = 1_000_000_000

    /// How many libraries may be opened while another thread counts. They use at most a sixth of the smallest reserve.
    private static let uncheckedWhileCounting = 16

    private struct State {
        /// How many modules may be opened before the maps are counted again.
        var unchecked = 0
        /// The time when the maps are counted again in any case, in `CLOCK_MONOTONIC` nanoseconds.
        var next: Int64 = 0
        var warning: PluginError?
    }

    private let state = Mutex(State())
    private let limit: @Sendable () -> Int?
    private let count: @Sendable () -> Int?

    /// The budget of the process.
    static let shared = MapsBudget()

    init(
        limit: @escaping @Sendable () -> Int? = { ProcessLimits.mapsLimit },
        count: @escaping @Sendable () -> Int? = { ProcessLimits.countMaps() }
    ) {
        (self.limit, self.count) = (limit, count)
    }

    /// The warning, once ``warningShare`` has been reached.
    var warning: PluginError? { state.withLock { $0.warning } }

    /// Checks that a library may be opened. The fewer maps are left, the more often they are counted.
    ///
    /// - Throws: `outOfResources` if no reserve would remain.
    func require(for file: String) throws(PluginError) {
        let start = monotonicNow()
        let isCheckDue = state.withLock { state in
            state.unchecked -= 1
            guard state.unchecked < 0 || start >= state.next else { return false }
            // If several hosts of the process open libraries at the same time, only one of them counts.
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
            "\(file) is not opened: \(Self.usage(used, limit)); the last \(100 - Self.openingShare) percent are "
                + "reserved for the threads and memory of running modules. \(Self.remedy(limit))")
    }

    private static func warning(_ used: Int, _ limit: Int) -> PluginError {
        PluginError(
            .outOfResources,
            "\(usage(used, limit)). From \(openingShare) percent on, no more modules are opened. \(remedy(limit))")
    }

    private static func usage(_ used: Int, _ limit: Int) -> String {
        "this process uses \(used) of the \(limit) memory maps that vm.max_map_count allows it"
    }

    private static func remedy(_ limit: Int) -> String {
        "Restart the host, which frees the maps of replaced modules, or raise the limit: sysctl -w "
            + "vm.max_map_count=\(limit * 2)"
    }
}
