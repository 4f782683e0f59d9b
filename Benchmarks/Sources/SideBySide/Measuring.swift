import CDispatch
import Dispatch
import Glibc
import Work

/// How long and how often each piece of work is measured.
struct Effort {
    /// The number of repetitions whose median is taken. If the machine changes its speed during some of them, there are
    /// up to three times as many.
    var repetitions = 9
    /// The duration of one repetition, in nanoseconds.
    var duration: Double = 30_000_000
    /// Whether only a little work is done, to check that everything works.
    var isCheck = false
    /// The programs of other libraries.
    var peers = PeerPrograms()

    static var check: Effort { Effort(repetitions: 1, duration: 200_000, isCheck: true) }
}

/// One repetition of a piece of work.
struct Sample {
    /// The time of one call, in nanoseconds.
    let time: Double
    let before: Reference
    let after: Reference

    /// Whether the machine kept its speed.
    var isSteady: Bool { before.isClose(to: after) }
    /// The time in steps of the reference's arithmetic.
    var steps: Double { 2 * time / (before.arithmetic + after.arithmetic) }
}

/// The figures of one piece of work.
struct Figure {
    /// The very first call, in nanoseconds: none of its code and data had been needed before.
    let first: Double
    let samples: [Sample]

    /// The median time of one call, in nanoseconds.
    var median: Double { samples.map(\.time).median }
    var least: Double { samples.map(\.time).min() ?? 0 }
    /// The median in steps of the reference, of the steady repetitions if there are any.
    var steps: Double {
        let steady = samples.filter(\.isSteady)
        return (steady.isEmpty ? samples : steady).map(\.steps).median
    }
    /// Whether more than half of the planned number of repetitions are steady.
    func isSteady(_ effort: Effort) -> Bool { samples.count(where: \.isSteady) > effort.repetitions / 2 }
}

/// CLOCK_MONOTONIC, in nanoseconds.
func now() -> Double {
    var time = timespec()
    clock_gettime(CLOCK_MONOTONIC, &time)
    return Double(time.tv_sec) * 1e9 + Double(time.tv_nsec)
}

extension Collection<Double> {
    func quantile(_ part: Double) -> Double {
        let sorted = sorted()
        return sorted[Swift.min(sorted.count - 1, Int(Double(sorted.count) * part))]
    }

    var median: Double { quantile(0.5) }
}

extension Effort {
    /// Measures several pieces of work in turns, one repetition of each after the other, and the reference between
    /// them, so that a disturbance of the machine affects all of them, and is noticed.
    func measure(_ works: [Work]) throws -> [Figure] {
        var firsts: [Double] = []
        var counts: [Int] = []
        for work in works {
            firsts.append(try time(work, 1))
            counts.append(try count(for: work))
        }
        var samples = works.map { _ in [Sample]() }
        for repetition in 0..<3 * repetitions {
            let isSteady = samples.allSatisfy { $0.count(where: \.isSteady) >= repetitions }
            if isSteady || isCheck, repetition >= repetitions { break }
            var before = Reference.measured()
            for (index, work) in works.enumerated() {
                let time = try time(work, counts[index]) / Double(counts[index])
                let after = Reference.measured()
                samples[index].append(Sample(time: time, before: before, after: after))
                before = after
            }
        }
        return zip(firsts, samples).map(Figure.init)
    }

    /// Returns how many calls take as long as one repetition should. Finding this out also warms up all caches.
    private func count(for work: Work) throws -> Int {
        var count = 1
        while true {
            // The lesser of two: a single stall would leave a few calls, which would be measured with cold caches.
            let least = min(try time(work, count), try time(work, count))
            if least >= duration / 4 { return max(1, Int(Double(count) * duration / least)) }
            count *= 2
        }
    }

    private func time(_ work: Work, _ count: Int) throws -> Double {
        switch work.body {
        case .synchronous(let body):
            let start = now()
            try body(count)
            return now() - start
        case .asynchronous(let body):
            nonisolated(unsafe) let body = body  // This thread waits until the task has ended.
            return try inTask {
                let start = now()
                try await body(count)
                return now() - start
            }
        }
    }

    /// Measures the library, the floors and the peers of one comparison.
    func row(_ comparison: Comparison) throws -> Row {
        let peers = peers.works(comparison.peer, comparison.size)
        let figures = try measure([comparison.ours] + comparison.floors + peers)
        let share = Double(comparison.share)
        var row = Row(comparison.what, size: comparison.size, unit: "ns", ours: figures[0].median / share)
        row.first = figures[0].first
        row.least = figures[0].least / share
        row.steps = figures[0].steps / share
        row.isSteady = figures.allSatisfy { $0.isSteady(self) }
        let others = zip(comparison.floors + peers, figures.dropFirst()).map { work, figure in
            Row.Other(name: work.name, value: figure.median / share, steps: figure.steps / share)
        }
        row.floors = Array(others.prefix(comparison.floors.count))
        row.peers = Array(others.dropFirst(comparison.floors.count))
        row.peer = comparison.peer
        row.goal = comparison.goal
        return row
    }

    /// Makes rows of work that is measured in another way, and records the speed of the machine before and after it. If
    /// that changes, the work is measured again, up to three times in all.
    func referenced(_ rows: () throws -> [Row]) rethrows -> [Row] {
        var attempt = 1
        while true {
            let before = Reference.settled()
            let rows = try rows()
            let after = Reference.settled()
            let isSteady = before.isClose(to: after)
            if isSteady || isCheck || attempt == 3 {
                return rows.map { row in
                    var row = row
                    row.isSteady = isSteady
                    if let nanoseconds = ["ns": 1, "µs": 1e3, "ms": 1e6][row.unit] {
                        row.steps = 2 * row.ours * nanoseconds / (before.arithmetic + after.arithmetic)
                    }
                    return row
                }
            }
            attempt += 1
        }
    }
}
