import Synchronization

/// The durations of a sample of an action's calls, on a logarithmic scale: each power of two nanoseconds is divided
/// into eight buckets, so a value is at most an eighth too large, as in HdrHistogram. Any number of threads can add to
/// it.
///
/// Only one in 64 calls is measured, so threads that share the memory rarely contend for it. No memory is used before
/// the first duration.
struct Durations: ~Copyable, Sendable {
    private struct Buckets: ~Copyable {
        let counts = InlineArray<328, Atomic<UInt32>> { _ in Atomic(0) }  // As many as `bucketCount`.
        let longest = Atomic<Int64>(0)
    }

    /// `nil` before the first duration, then constant. Safe, because everything in it is atomic.
    private nonisolated(unsafe) let buckets = Atomic<UnsafeMutablePointer<Buckets>?>(nil)

    /// The scale ends at 2^43 nanoseconds, more than two hours; longer durations count in the last bucket.
    private static let powers = 43
    private static let bucketCount = (powers - 2) * 8

    deinit {
        guard let buckets = buckets.load(ordering: .acquiring) else { return }
        buckets.deinitialize(count: 1)
        buckets.deallocate()
    }

    /// Adds the duration from a time of CLOCK_MONOTONIC, in nanoseconds, until now.
    @inline(never)
    func add(since start: Int64) { add(max(0, monotonicNow() - start)) }

    func add(_ nanoseconds: Int64) {
        let buckets = buckets.load(ordering: .acquiring) ?? makeBuckets()
        buckets.pointee.counts[Self.bucket(of: UInt64(nanoseconds))].add(1, ordering: .relaxed)
        buckets.pointee.longest.max(nanoseconds, ordering: .relaxed)
    }

    @inline(never)
    private func makeBuckets() -> UnsafeMutablePointer<Buckets> {
        let made = UnsafeMutablePointer<Buckets>.allocate(capacity: 1)
        made.initialize(to: Buckets())
        let (isFirst, other) = buckets.compareExchange(
            expected: nil, desired: made, ordering: .acquiringAndReleasing)
        guard !isFirst, let other else { return made }
        made.deinitialize(count: 1)
        made.deallocate()
        return other
    }

    /// The durations measured so far.
    var measured: Measured {
        guard let buckets = buckets.load(ordering: .acquiring) else { return Measured(counts: [], longest: 0) }
        return Measured(
            counts: (0..<Self.bucketCount).map { Int(buckets.pointee.counts[$0].load(ordering: .relaxed)) },
            longest: buckets.pointee.longest.load(ordering: .relaxed))
    }

    /// Returns the bucket of a duration. Each number below 8 has a bucket of its own; for larger numbers, the highest
    /// bit and the three bits after it determine the bucket.
    fileprivate static func bucket(of nanoseconds: UInt64) -> Int {
        if nanoseconds < 8 { return Int(nanoseconds) }
        let power = 63 - nanoseconds.leadingZeroBitCount
        if power >= powers { return bucketCount - 1 }
        return (power - 2) * 8 + Int(nanoseconds >> UInt64(power - 3)) & 7
    }

    /// Returns the largest number in a bucket.
    fileprivate static func upperBound(of bucket: Int) -> Int64 {
        if bucket < 8 { return Int64(bucket) }
        let power = bucket / 8 + 2
        return (Int64(8 + bucket % 8 + 1) << Int64(power - 3)) - 1
    }

    /// The counts of the buckets; those of several actions can be added.
    struct Measured: Sendable {
        private(set) var counts: [Int]
        private(set) var longest: Int64

        var total: Int { counts.reduce(0, +) }

        /// Returns the duration that a fraction of the calls, from 0 to 1, did not exceed; `nil` if none was measured.
        func quantile(_ part: Double) -> Duration? {
            var rest = Int((Double(total) * part).rounded(.up))
            for (bucket, count) in counts.enumerated() where count > 0 {
                rest -= count
                if rest <= 0 { return .nanoseconds(min(longest, Durations.upperBound(of: bucket))) }
            }
            return nil
        }

        static func += (sum: inout Measured, other: Measured) {
            if sum.counts.isEmpty {
                sum.counts = other.counts
            } else {
                for bucket in other.counts.indices { sum.counts[bucket] += other.counts[bucket] }
            }
            sum.longest = max(sum.longest, other.longest)
        }
    }
}
