import Testing

@testable import PluginFile
@testable import TestSupport

@Suite struct SuggestionTests {
    private let commands = ["run", "list", "inspect", "call", "open"]

    @Test(
        arguments: [
            ("fetchDetial", "fetchDetail"), ("FETCHLIST", "fetchList"), ("remov", "remove"), ("lst", "list"),
            ("lits", "list"), ("LIST", "list"), ("opne", "open"),
        ])
    func `The nearest word is suggested`(slip: String, word: String) {
        #expect(nearest(to: slip, in: ["fetchDetail", "fetchList", "remove"] + commands) == word)
        #expect(didYouMean(slip, [word]) == " Did you mean “\(word)”?")
    }

    @Test func `A prefix is enough if it is not too short`() {
        #expect(nearest(to: "insp", in: commands) == "inspect")
        #expect(nearest(to: "ins", in: commands) == nil)
    }

    @Test(arguments: ["", "x", "something", "--", "zebra", String(repeating: "a", count: 100_000)])
    func `A distant word is not suggested`(word: String) {
        #expect(nearest(to: word, in: commands + [String(repeating: "a", count: 100_000)]) == nil)
        #expect(didYouMean(word, commands).isEmpty)
    }

    /// The definition counts the steps from every beginning of one word to every beginning of the other.
    @Test func `The distance of two words agrees with its definition`() {
        var random = SplitMix(seed: 7)
        func word() -> String {
            String((0..<Int.random(in: 1...9, using: &random)).map { _ in "abcd".randomElement(using: &random)! })
        }
        for _ in 0..<20_000 {
            let (left, right) = (word(), word())
            let isBeginning = left.count > 3 && right.hasPrefix(left)
            let limit = min(3, max(1, max(left.count, right.count) / 3))
            let isNear = isBeginning || distance(Array(left), Array(right)) <= limit
            #expect((nearest(to: left, in: [right]) != nil) == isNear, "\(left), \(right)")
        }
    }

    private func distance(_ left: [Character], _ right: [Character]) -> Int {
        var steps = [[Int]](repeating: [Int](repeating: 0, count: right.count + 1), count: left.count + 1)
        for row in 0...left.count {
            for column in 0...right.count {
                if row == 0 || column == 0 {
                    steps[row][column] = row + column
                    continue
                }
                let isEqual = left[row - 1] == right[column - 1]
                var least = min(
                    steps[row - 1][column] + 1, steps[row][column - 1] + 1,
                    steps[row - 1][column - 1] + (isEqual ? 0 : 1))
                if row > 1, column > 1, left[row - 1] == right[column - 2], left[row - 2] == right[column - 1] {
                    least = min(least, steps[row - 2][column - 2] + 1)
                }
                steps[row][column] = least
            }
        }
        return steps[left.count][right.count]
    }
}
