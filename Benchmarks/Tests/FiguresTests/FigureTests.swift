import Figures
import Foundation
import Testing

@Suite struct FigureTests {
    @Test(arguments: [(0.25, 3.0), (0.5, 5), (0.99, 9), (1, 9)])
    func `A quantile is an element`(part: Double, value: Double) {
        #expect([9.0, 1, 8, 2, 7, 3, 6, 4, 5].quantile(part) == value)
    }

    @Test func `The 99th percentile of a hundred is not the slowest one`() {
        #expect((1...100).map(Double.init).quantile(0.99) == 99)
    }

    @Test(arguments: [(4.5, 100.0, true), (4.7, 139, true), (4.8, 100, false), (4.2, 100, false), (4.5, 150, false)])
    func `A reference is close if both of its loops are`(arithmetic: Double, memory: Double, isClose: Bool) {
        let reference = Reference(arithmetic: 4.5, memory: 100)
        #expect(reference.isClose(to: Reference(arithmetic: arithmetic, memory: memory)) == isClose)
    }

    @Test func `Rows of several processes are one row with the repetitions of all of them`() throws {
        let speed = Reference(arithmetic: Reference.arithmeticOfGoals, memory: 100)
        func row(_ ours: [Double], floor: Double) throws -> Row {
            let figures = [ours, [floor]].map { Figure($0.map { Sample(time: $0, before: speed, after: speed) }) }
            var row = Row(
                "work", size: 10, unit: "ns", share: 2, of: [("ours", figures[0]), ("floor", figures[1])], floors: 1,
                repetitions: 1)
            (row.goal, row.first, row.peer) = (Goal(atMost: 60), ours[0], "peer")
            // As one process passes it to another.
            return try JSONDecoder().decode(Row.self, from: JSONEncoder().encode(row))
        }
        let pooled = try Row.pooled([row([130, 132], floor: 30), row([100, 102], floor: 20), row([104], floor: 40)])
        #expect(pooled.ours == 52)
        #expect(pooled.least == 50)
        #expect(pooled.floors.map(\.value) == [15])
        #expect(abs(pooled.ratio! - 5.1) < 1e-9)
        #expect((pooled.size, pooled.first, pooled.peer, pooled.goal.atMost) == (10, 130, "peer", 60))
        #expect(pooled.disturbance == nil)
        #expect([pooled].completed { _ in [] }[0].verdict == "reached")
    }

    @Test func `A row without repetitions is that of the first process`() {
        #expect(Row.pooled([Row("work", unit: "KiB", ours: 1), Row("work", unit: "KiB", ours: 2)]).ours == 1)
    }

    @Test func `Steps are those of the steady repetitions, at the speed of each`() {
        let slow = Reference(arithmetic: 9, memory: 100)
        let fast = Reference(arithmetic: 4.5, memory: 100)
        let figure = Figure([
            Sample(time: 90, before: fast, after: fast), Sample(time: 180, before: slow, after: slow),
            Sample(time: 9, before: slow, after: fast),
        ])
        #expect(figure.steps == 20)
        #expect(figure.isSteady(of: 3))
        #expect(!figure.isSteady(of: 4))
    }
}
