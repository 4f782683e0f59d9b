import PluginABI
import Testing

@testable import PluginHost

@Suite struct DescribingScanTests {
    /// Runs of a process that crashes each time because of one more type, after some seconds.
    private func runs(lasting seconds: Int64, within timeout: Duration) -> (limits: [Duration], without: [[String]]) {
        var time: Int64 = 5
        var limits: [Duration] = []
        var without: [[String]] = []
        func now() -> Int64 { time }
        _ = PluginHost.retrying(within: timeout, now: now) { limit, types in
            time += seconds * 1_000_000_000
            limits.append(limit)
            without.append(types)
            return ScanProcess.Outcome(
                findings: [.passed], ending: .killed(signal: 6), lastWords: "", isDescribed: true,
                words: "Type\(types.count)")
        }
        return (limits, without)
    }

    @Test func `all runs without types that crash share the time`() {
        let runs = runs(lasting: 4, within: .seconds(10))
        #expect(runs.limits == [.seconds(10), .seconds(6), .seconds(2)])
        #expect(runs.without == [[], ["Type0"], ["Type0", "Type1"]])
    }

    @Test func `the number of runs is limited`() {
        #expect(runs(lasting: 0, within: .seconds(10)).limits.count == 17)
    }
}
