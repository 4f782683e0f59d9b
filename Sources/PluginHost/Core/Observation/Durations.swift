import Synchronization

/// How long some calls of an action took, on a logarithmic scale: each power of two nanoseconds is cut into eight, so a
/// figure is at most an eighth too large. (As HdrHistogram does.) Any number of threads add to it.
///
/// One in 64 calls is measured, so threads that share its memory do not get into each other's way; and it takes none
/// before the first.
struct Durations: ~Copyable, Sendable {
    private struct Buckets: ~Copyable {
        let counts = InlineArray<328, Atomic<UInt32>> { _ in Atomic(0) }  // As many as `places`.
        let longest = Atomic<Int64>(0)
    }

    /// Nil before the first duration; then the same until the end. Sound: all in it is atomic.
    private nonisolated(unsafe) let buckets = Atomic<UnsafeMutablePointer<Buckets>?>(nil)

    /// Up to 2^43 nanoseconds, more than two hours; what takes longer counts as that.
    private static let powers = 43
    private static let places = (powers - 2) * 8

    deinit {
        guard let buckets = buckets.load(ordering: .acquiring) else { return }
        buckets.deinitialize(count: 1)
        buckets.deallocate()
    }

    /// Adds a duration: from a moment of CLOCK_MONOTONIC, in nanoseconds, until now.
    @inline(never)
    func add(since start: Int64) { add(max(0, monotonicNow() - start)) }

    func add(_ nanoseconds: Int64) {
        let buckets = buckets.load(ordering: .acquiring) ?? makeBuckets()
        buckets.pointee.counts[Self.place(of: UInt64(nanoseconds))].add(1, ordering: .relaxed)
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

    /// What was measured until now.
    var measured: Measured {
        guard let buckets = buckets.load(ordering: .acquiring) else { return Measured(counts: [], longest: 0) }
        return Measured(
            counts: (0..<Self.places).map { Int(buckets.pointee.counts[$0].load(ordering: .relaxed)) },
            longest: buckets.pointee.longest.load(ordering: .relaxed))
    }

    /// A number below 8 has a place of its own; from there on its highest bit and the three behind it tell the place.
    fileprivate static func place(of nanoseconds: UInt64) -> Int {
        if nanoseconds < 8 { return Int(nanoseconds) }
        let power = 63 - nanoseconds.leadingZeroBitCount
        if power >= powers { return places - 1 }
        return (power - 2) * 8 + Int(nanoseconds >> UInt64(power - 3)) & 7
    }

    /// The largest number of a place.
    fileprivate static func upperBound(of place: Int) -> Int64 {
        if place < 8 { return Int64(place) }
        let power = place / 8 + 2
        return (Int64(8 + place % 8 + 1) << Int64(power - 3)) - 1
    }

    /// Durations that were counted; of several actions they can be added up.
    struct Measured: Sendable {
        private(set) var counts: [Int]
        private(set) var longest: Int64

        init(counts: [Int], longest: Int64) { (self.counts, self.longest) = (counts, longest) }

        var total: Int { counts.reduce(0, +) }

        /// The duration that a part of the calls, from 0 to 1, did not exceed; nil where none was measured.
        func quantile(_ part: Double) -> Duration? {
            var rest = Int((Double(total) * part).rounded(.up))
            for (place, count) in counts.enumerated() where count > 0 {
                rest -= count
                if rest <= 0 { return .nanoseconds(min(longest, Durations.upperBound(of: place))) }
            }
            return nil
        }

        static func += (sum: inout Measured, other: Measured) {
            if sum.counts.isEmpty {
                sum.counts = other.counts
            } else {
                for place in other.counts.indices { sum.counts[place] += other.counts[place] }
            }
            sum.longest = max(sum.longest, other.longest)
        }
    }
}
