import CDispatch
import CPluginHost
import Dispatch
import Glibc
import PluginABI

/// CLOCK_MONOTONIC, in nanoseconds.
func monotonicNow() -> Int64 {
    var time = timespec()
    clock_gettime(CLOCK_MONOTONIC, &time)
    return Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec)
}

/// What CLOCK_MONOTONIC_COARSE is behind CLOCK_MONOTONIC at most, in nanoseconds: one tick, of 100 in a second or more.
/// It is read several times faster.
private let coarseError: Int64 = 10_000_000

/// The time of CLOCK_MONOTONIC at which a timeout has passed; 0, which means never, where there is none. Timeouts of a
/// second or more may pass a tick late.
///
/// - Parameter coarseNow: CLOCK_MONOTONIC_COARSE, as it has just been read.
@inline(__always)
func deadline(in timeout: Int64, from coarseNow: Int64) -> Int64 {
    guard timeout > 0 else { return 0 }
    let now = timeout < 1_000_000_000 ? monotonicNow() : coarseNow + coarseError
    let (sum, overflow) = now.addingReportingOverflow(timeout)
    return overflow ? 0 : sum
}

/// Whether a deadline, 0 for none, has passed.
@inline(__always)
func isOver(_ deadline: Int64) -> Bool {
    guard deadline != 0, plugin_host_coarse_now() + coarseError > deadline else { return false }
    return monotonicNow() > deadline
}

extension Duration {
    /// At most about 292 years.
    var dispatchInterval: DispatchTimeInterval { .nanoseconds(Int(nanoseconds)) }
}
