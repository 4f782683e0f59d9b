import CDispatch
import Dispatch
import Figures
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

/// CLOCK_MONOTONIC, in nanoseconds.
func now() -> Double {
    var time = timespec()
    clock_gettime(CLOCK_MONOTONIC, &time)
    return Double(time.tv_sec) * 1e9 + Double(time.tv_nsec)
}

extension Effort {
    /// Measures several pieces of work in turns, and returns the times of their first calls in nanoseconds, too.
    func measure(_ works: [Work]) throws -> [(first: Double, figure: Figure)] {
        var firsts: [Double] = []
        var bodies: [() throws -> Double] = []
        for work in works {
            firsts.append(try time(work, 1))
            let count = try count(for: work)
            bodies.append { try time(work, count) / Double(count) }
        }
        return Array(zip(firsts, try alternate(bodies, Reference.measured)))
    }

    /// Makes repetitions of several pieces of work in turns, one of each after the other, and measures the reference
    /// between them, so that a disturbance of the machine affects all of them, and is noticed.
    ///
    /// - Parameters:
    ///   - bodies: Return times in nanoseconds.
    ///   - seconds: For how long there are repetitions, up to three times as many as planned.
    private func alternate(
        _ bodies: [() throws -> Double], for seconds: Double = 0, _ reference: () -> Reference
    ) throws -> [Figure] {
        var samples = bodies.map { _ in [Sample]() }
        let end = now() + seconds * 1e9
        for repetition in 0..<3 * repetitions {
            let isSteady = samples.allSatisfy { $0.count(where: \.isSteady) >= repetitions }
            if isCheck || isSteady && now() >= end, repetition >= repetitions { break }
            var before = reference()
            for (index, body) in bodies.enumerated() {
                let time = try body()
                let after = reference()
                samples[index].append(Sample(time: time, before: before, after: after))
                before = after
            }
        }
        return samples.map(Figure.init)
    }

    /// Measures work that each process can do only once, and its floors. As each repetition begins with caches that
    /// other processes have used, repetitions differ more, and there are more of them.
    func row(_ what: String, size: Int? = nil, _ ours: Once, floors: [(String, Once)] = [], in folder: String) throws
        -> Row
    {
        let works = [(what, ours)] + floors
        let others = OtherPrograms()
        let figures = try alternate(works.map { work in { try work.1.apart(folder).time } }, for: 5, Reference.settled)
        var row = Row(
            what, size: size, unit: "ms", of: Array(zip(works.map(\.0), figures)), floors: floors.count,
            repetitions: repetitions)
        if others.disturb { row.disturbance = OtherPrograms.text }
        row.margin = 1.1
        return row
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
        let works = [comparison.ours] + comparison.floors + peers
        let figures = try measure(works)
        var row = Row(
            comparison.what, size: comparison.size, unit: "ns", share: comparison.share,
            of: Array(zip(works.map(\.name), figures.map(\.figure))), floors: comparison.floors.count,
            repetitions: repetitions)
        row.first = figures[0].first
        row.peer = comparison.peer
        row.goal = comparison.goal
        return row
    }

    /// Makes rows of work that is measured in another way, and records the speed of the machine before and after it. If
    /// that changes, the work is measured again, up to three times in all.
    func referenced(_ rows: () throws -> [Row]) rethrows -> [Row] {
        var attempt = 1
        while true {
            let (before, others) = (Reference.settled(), OtherPrograms())
            let rows = try rows()
            let (disturb, after) = (others.disturb, Reference.settled())
            if before.isClose(to: after) && !disturb || isCheck || attempt == 3 {
                return rows.map { row in
                    var row = row
                    if disturb { row.disturbance = OtherPrograms.text }
                    row.refer(to: before, after)
                    return row
                }
            }
            attempt += 1
        }
    }
}
