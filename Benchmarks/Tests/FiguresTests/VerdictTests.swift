import Figures
import Testing

@Suite struct VerdictTests {
    private let speed = Reference(arithmetic: Reference.arithmeticOfGoals, memory: 100)
    private let slower = Reference(arithmetic: 2 * Reference.arithmeticOfGoals, memory: 100)

    private func samples(_ times: [Double], _ before: Reference, _ after: Reference? = nil) -> Figure {
        Figure(times.map { Sample(time: $0, before: before, after: after ?? before) })
    }

    private func row(_ goal: Goal, _ figures: Figure..., unit: String = "ns", peers: Int = 0) -> Row {
        var row = Row(
            "work", unit: unit, of: figures.enumerated().map { ("figure \($0)", $1) },
            floors: figures.count - 1 - peers, repetitions: figures[0].samples.count)
        row.goal = goal
        return row
    }

    private func verdict(_ row: Row, beside others: [Row] = []) -> String {
        ([row] + others).completed { _ in [] }[0].verdict
    }

    @Test(arguments: [(94.0, "reached"), (96, "within 5 %"), (104, "within 5 %"), (106, "MISSED")])
    func `Figures near the goal are not told apart from it`(time: Double, verdict: String) {
        #expect(self.verdict(row(Goal(atMost: 100), samples([time], speed))) == verdict)
    }

    @Test(arguments: [(90.0, "reached"), (92, "within 10 %"), (109, "within 10 %"), (111, "MISSED")])
    func `Work that differs more between runs has a larger margin`(time: Double, verdict: String) {
        var row = row(Goal(atMost: 100), samples([time], speed))
        row.margin = 1.1
        #expect(self.verdict(row) == verdict)
    }

    @Test func `A goal in nanoseconds refers to the speed at which it was set`() {
        #expect(verdict(row(Goal(atMost: 100), samples([180], slower))) == "reached")
        #expect(verdict(row(Goal(atMost: 1), samples([1_800_000], slower), unit: "ms")) == "reached")
    }

    @Test func `A share of the work is compared with the goal`() {
        var row = Row(
            "work", unit: "ns", share: 10, of: [("", samples([900], speed))], floors: 0, repetitions: 1)
        row.goal = Goal(atMost: 100)
        #expect(row.ours == 90)
        #expect(verdict(row) == "reached")
    }

    @Test func `The lower quartile is judged, so that disturbances do not decide`() {
        #expect(verdict(row(Goal(atMost: 100), samples([90, 90, 90, 500, 500, 500, 500], speed))) == "reached")
    }

    @Test func `Ratios compare figures at the speed of each`() {
        let row = row(Goal(timesFloor: 1.5), samples([100], speed), samples([180], slower))
        #expect(row.ratio == 100.0 / 90)
        #expect(verdict(row) == "reached")
    }

    @Test func `A goal of a floor that is missing is not judged`() {
        #expect(verdict(row(Goal(timesFloor: 1.5), samples([1], speed))) == "not judged: there is no floor")
    }

    @Test func `A peer of the goal is compared, or missing`() {
        #expect(verdict(row(Goal(below: "figure 1"), samples([1], speed), samples([2], speed), peers: 1)) == "reached")
        #expect(verdict(row(Goal(below: "figure 1"), samples([2], speed), samples([1], speed), peers: 1)) == "MISSED")
        #expect(verdict(row(Goal(below: "Other"), samples([1], speed))) == "not judged: Other is missing")
    }

    @Test(arguments: [(74.0, "reached"), (100, "not judged: the machine changed its speed"), (310, "MISSED")])
    func `While the speed changes, only times far from the goal are judged`(time: Double, verdict: String) {
        var row = Row("work", unit: "ms", ours: time)
        row.goal = Goal(atMost: 100)
        row.refer(to: speed, slower)
        #expect(self.verdict(row) == verdict)
    }

    @Test func `Sizes, ratios and floors do not depend on the speed`() {
        var (size, share, time) = (
            Row("work", unit: "KiB", ours: 90), Row("work", unit: "×", ours: 2), Row("work", unit: "ms", ours: 90)
        )
        (size.goal, share.goal, time.goal) = (Goal(atMost: 100), Goal(atLeast: 1), Goal(timesFloor: 1.5))
        time.floors = [Row.Other("floor", 100)]
        for var row in [size, share, time] {
            row.refer(to: speed, slower)
            #expect(verdict(row) == "reached")
        }
    }

    @Test func `Beside other programs, only figures far from the goal are judged`() {
        var row = Row("work", unit: "ms", ours: 110)
        row.goal = Goal(atMost: 100)
        row.disturbance = "other programs ran"
        row.refer(to: speed, speed)
        #expect(verdict(row) == "not judged: other programs ran")
        row.goal = Goal(atMost: 50)
        #expect(verdict(row) == "MISSED")
    }

    @Test(arguments: [(90.0, "reached"), (110, "not judged: figure 1 > 150 ns")])
    func `A floor that is too slow excuses, but does not hide what is reached`(time: Double, verdict: String) {
        let goal = Goal(atMost: 100, floorAtMost: 150)
        #expect(self.verdict(row(goal, samples([time], speed), samples([151], speed))) == verdict)
    }

    @Test func `Growth is judged beside the smallest size`() {
        var small = Row("work", size: 10, unit: "ns", ours: 100)
        var large = Row("work", size: 1_000, unit: "ns", ours: 140)
        (small.goal, large.goal) = (Goal(growth: 1.2), Goal(growth: 1.2))
        #expect(verdict(small, beside: [large]) == "")
        #expect(verdict(large, beside: [small]) == "MISSED")
        small.refer(to: speed, slower)
        #expect(verdict(large, beside: [small]) == "not judged: the machine changed its speed")
    }

    @Test(arguments: [(1.9, "reached"), (1.5, "within 5 %"), (1.4, "MISSED")])
    func `More is better`(figure: Double, verdict: String) {
        var row = Row("work", unit: "×", ours: figure)
        row.floors = [Row.Other("floor", 2)]
        row.goal = Goal(atLeastOfFloor: 0.75)
        #expect(self.verdict(row) == verdict)
        row.goal = Goal(atLeast: 1.5)
        #expect(self.verdict(row) == verdict)
    }

    @Test func `The worst part of a goal decides, and no goal needs no verdict`() {
        #expect(verdict(row(Goal(atMost: 100, timesFloor: 2), samples([90], speed), samples([30], speed))) == "MISSED")
        #expect(verdict(row(Goal(), samples([90], speed))) == "")
    }
}
