import CDispatch
import CPluginHost
import Dispatch
import Glibc
import PluginABI

/// Returns the time of CLOCK_MONOTONIC, in nanoseconds.
func monotonicNow() -> Int64 { now(CLOCK_MONOTONIC) }

/// Returns the time since 1970, in nanoseconds.
func realTimeNow() -> Int64 { now(CLOCK_REALTIME) }

@inline(__always)
private func now(_ clock: clockid_t) -> Int64 {
    var time = timespec()
    clock_gettime(clock, &time)
    return Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec)
}

/// The maximum time by which CLOCK_MONOTONIC_COARSE is behind CLOCK_MONOTONIC, in nanoseconds: one tick, of which there
/// are 100 or more per second. CLOCK_MONOTONIC_COARSE is several times faster to read.
private let coarseError: Int64 = 10_000_000

/// Returns the time of CLOCK_MONOTONIC at which a timeout has passed; 0, which means never, if there is no timeout. A
/// timeout of a second or more may be detected one tick late.
///
/// - Parameter coarseNow: The time of CLOCK_MONOTONIC_COARSE, read just before.
@inline(__always)
func deadline(in timeout: Int64, from coarseNow: Int64) -> Int64 {
    guard timeout > 0 else { return 0 }
    let now = timeout < 1_000_000_000 ? monotonicNow() : coarseNow + coarseError
    let (sum, overflow) = now.addingReportingOverflow(timeout)
    return overflow ? 0 : sum
}

/// Returns whether a deadline has passed; 0 means that there is none.
@inline(__always)
func isOver(_ deadline: Int64) -> Bool {
    guard deadline != 0, plugin_host_coarse_now() + coarseError > deadline else { return false }
    return monotonicNow() > deadline
}

extension Duration {
    /// The duration as an interval, at most about 292 years.
    var dispatchInterval: DispatchTimeInterval { .nanoseconds(Int(nanoseconds)) }
}
