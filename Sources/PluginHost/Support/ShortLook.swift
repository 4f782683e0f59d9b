import Dispatch
import Glibc
import Synchronization

/// A look at a semaphore before a thread sleeps.
///
/// Waking a thread takes longer than most hooks. When many modules start, two threads wait for each other several times
/// for each of them. As long as the signals come soon, neither sleeps; after a look in vain, a few waits are not looked
/// at. The thread yields the processor while it looks.
final class ShortLook: Sendable {
    /// How long a thread looks, in nanoseconds.
    private static let duration: UInt64 = 50_000
    /// How many waits are not looked at after a look in vain.
    private static let pause = 8

    private let left = Atomic(0)

    /// Returns whether the semaphore was signalled within a moment. If so, the signal has been taken.
    func sees(_ semaphore: DispatchSemaphore) -> Bool {
        let rest = left.load(ordering: .relaxed)
        guard rest == 0 else {
            left.store(rest - 1, ordering: .relaxed)
            return false
        }
        let end = DispatchTime.now().uptimeNanoseconds + Self.duration
        repeat {
            // The time 0 is `DISPATCH_TIME_NOW`.
            if semaphore.wait(timeout: DispatchTime(uptimeNanoseconds: 0)) == .success { return true }
            sched_yield()
        } while DispatchTime.now().uptimeNanoseconds < end
        left.store(Self.pause, ordering: .relaxed)
        return false
    }
}
