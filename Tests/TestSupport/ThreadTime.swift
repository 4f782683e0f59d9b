import Foundation

/// The processor time that this thread has used. Unlike a clock, it does not depend on the other work of the machine.
func threadTime() -> Duration {
    var time = timespec()
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
    return .seconds(time.tv_sec) + .nanoseconds(time.tv_nsec)
}
