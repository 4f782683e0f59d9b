import Figures
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
