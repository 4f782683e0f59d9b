import Testing

@testable import PluginHost

@Suite struct SuggestionTests {
    private let commands = ["run", "list", "inspect", "call", "open"]

    @Test(
        arguments: [
            ("fetchDetial", "fetchDetail"), ("FETCHLIST", "fetchList"), ("remov", "remove"), ("lst", "list"),
            ("lits", "list"), ("LIST", "list"), ("opne", "open"),
        ])
    func `A near word is suggested, the nearest one`(slip: String, word: String) {
        #expect(nearest(to: slip, in: ["fetchDetail", "fetchList", "remove"] + commands) == word)
        #expect(didYouMean(slip, [word]) == " Did you mean “\(word)”?")
    }

    @Test func `A beginning is enough, if it is not too short`() {
        #expect(nearest(to: "insp", in: commands) == "inspect")
        #expect(nearest(to: "ins", in: commands) == nil)
    }

    @Test(arguments: ["", "x", "something", "--", "zebra", String(repeating: "a", count: 100_000)])
    func `A word that is not near is not suggested`(word: String) {
        #expect(nearest(to: word, in: commands + [String(repeating: "a", count: 100_000)]) == nil)
        #expect(didYouMean(word, commands).isEmpty)
    }
}
