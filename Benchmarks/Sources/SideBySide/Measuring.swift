import CDispatch
import Dispatch
import Glibc
import Work

/// How long and how often is measured.
struct Effort {
    /// Of which the median is taken.
    var repetitions = 9
    /// Of one repetition, in nanoseconds.
    var duration: Double = 30_000_000
    /// Whether only few and small things are made: it is to be seen that everything works.
    var isCheck = false

    static let check = Effort(repetitions: 1, duration: 200_000, isCheck: true)
}

/// Figures of one work, in nanoseconds a call.
struct Figure {
    let median: Double
    /// The very first call: nothing of its code and data was needed before.
    let first: Double
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
    /// Measures works in turns, one repetition of each after the other, so that what disturbs the machine meanwhile
    /// disturbs all of them.
    func measure(_ works: [Work]) throws -> [Figure] {
        var firsts: [Double] = []
        var counts: [Int] = []
        for work in works {
            firsts.append(try time(work, 1))
            counts.append(try count(for: work))
        }
        var times = works.map { _ in [Double]() }
        for _ in 0..<repetitions {
            for (index, work) in works.enumerated() {
                times[index].append(try time(work, counts[index]) / Double(counts[index]))
            }
        }
        return zip(times, firsts).map { Figure(median: $0.median, first: $1) }
    }

    /// How many calls last as long as a repetition is meant to. Finding out warms everything.
    private func count(for work: Work) throws -> Int {
        var count = 1
        while true {
            let time = try time(work, count)
            if time >= duration / 4 { return max(1, Int(Double(count) * duration / time)) }
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
            nonisolated(unsafe) let body = body  // This thread waits until it has ended.
            return try inTask {
                let start = now()
                try await body(count)
                return now() - start
            }
        }
    }

    /// Measures ours and its floors.
    func row(_ comparison: Comparison) throws -> Row {
        let figures = try measure([comparison.ours] + comparison.floors)
        let share = Double(comparison.share)
        var row = Row(comparison.what, size: comparison.size, unit: "ns", ours: figures[0].median / share)
        row.first = figures[0].first
        row.floors = zip(comparison.floors, figures.dropFirst()).map { floor, figure in
            Row.Other(name: floor.name, value: figure.median / share)
        }
        row.peer = comparison.peer
        row.goal = comparison.goal
        return row
    }
}
