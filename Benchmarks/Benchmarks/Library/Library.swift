import Benchmark
import Work

/// The library's own figures, and the floors, as `swift package benchmark` shows and compares them.
let benchmarks: @Sendable () -> Void = {
    let configuration = Benchmark.Configuration(
        metrics: [.wallClock, .throughput, .instructions], warmupIterations: 3, scalingFactor: .kilo,
        maxDuration: .seconds(1))

    func add(_ work: Work, _ name: String) {
        switch work.body {
        case .synchronous(let body):
            Benchmark(name, configuration: configuration) { benchmark in
                try body(benchmark.scaledIterations.count)
            }
        case .asynchronous(let body):
            Benchmark(name, configuration: configuration) { benchmark in
                try await body(benchmark.scaledIterations.count)
            }
        }
    }

    do {
        let comparisons =
            try Comparison.calls([10, 1_000, 10_000]) + Comparison.asynchronous() + Comparison.payloads([1 << 20])
            + Comparison.urls([10, 1_000, 10_000]) + Comparison.services([2, 1_000])
        for comparison in comparisons {
            let name = comparison.what + (comparison.size.map { " (\($0))" } ?? "")
            add(comparison.ours, name)
            for floor in comparison.floors { add(floor, "\(name), floor: \(floor.name)") }
        }
    } catch {
        fatalError("The benchmarks cannot be made: \(error)")
    }
}
