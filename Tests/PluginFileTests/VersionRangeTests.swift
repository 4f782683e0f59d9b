import PluginABI
import Testing

@testable import PluginFile

@Suite struct VersionRangeTests {
    /// A range, and versions inside and outside it, separated by spaces.
    struct Case: Sendable, CustomTestStringConvertible {
        let range: String
        let inside: String
        let outside: String
        var testDescription: String { range }

        init(_ range: String, _ inside: String, not outside: String = "") {
            (self.range, self.inside, self.outside) = (range, inside, outside)
        }
    }

    static let max = "18446744073709551615"

    static let cases: [Case] = [
        // One version.
        Case("1.2.3", "1.2.3 1.2.3+build", not: "1.2.4 1.2.2 1.2.3-rc.1 2.0.0 0.0.0"),
        Case("=1.2.3", "1.2.3", not: "1.2.4 1.2.3-0"),
        Case("= 1.2.3", "1.2.3", not: "1.2.4"),
        Case("1.2.3+build.7", "1.2.3 1.2.3+other", not: "1.2.4"),
        Case("1.2.3-rc.1", "1.2.3-rc.1 1.2.3-rc.1+x", not: "1.2.3 1.2.3-rc.2 1.2.3-rc"),
        Case("  1.2.3  ", "1.2.3", not: "1.2.4"),
        Case("\t1.2.3\t", "1.2.3", not: "1.2.4"),

        // Comparisons.
        Case(">1.2.3", "1.2.4 1.3.0 2.0.0", not: "1.2.3 1.2.2 1.2.4-beta 1.2.3-beta"),
        Case(">=1.2.3", "1.2.3 1.2.4 99.0.0", not: "1.2.2 0.99.99 1.2.3-rc 2.0.0-rc"),
        Case("<1.2.3", "1.2.2 0.0.0 1.1.99", not: "1.2.3 1.2.3-rc 1.2.2-rc 2.0.0"),
        Case("<=1.2.3", "1.2.3 1.2.2 0.0.0", not: "1.2.4 1.2.3-rc"),
        Case(">= 1.2.3", "1.2.3", not: "1.2.2"),
        Case(">  1.2.3", "1.2.4", not: "1.2.3"),

        // Comparisons with wildcards.
        Case(">1.2", "1.3.0 2.0.0", not: "1.2.0 1.2.99 1.3.0-rc"),
        Case(">1", "2.0.0 2.1.0", not: "1.0.0 1.99.99 2.0.0-rc"),
        Case(">1.x", "2.0.0", not: "1.99.99"),
        Case(">=1.2", "1.2.0 1.3.0", not: "1.1.99 1.2.0-rc"),
        Case(">=1", "1.0.0 5.0.0", not: "0.99.0"),
        Case("<1.2", "1.1.99 0.0.0", not: "1.2.0 1.2.0-rc"),
        Case("<1", "0.99.99", not: "1.0.0 1.0.0-alpha"),
        Case("<=1.2", "1.2.0 1.2.99 1.0.0", not: "1.3.0 1.3.0-alpha"),
        Case("<=1", "1.0.0 1.99.99 0.1.0", not: "2.0.0 2.0.0-alpha"),
        Case(">=*", "0.0.0 9.9.9", not: "1.0.0-rc"),
        Case("<=x", "0.0.0 9.9.9", not: "1.0.0-rc"),
        Case(">*", "", not: "0.0.0 1.0.0 1.0.0-rc"),
        Case("<*", "", not: "0.0.0 1.0.0 0.0.0-0 0.0.0-alpha"),
        Case("=1.2", "1.2.0 1.2.9", not: "1.3.0 1.1.9"),

        // Omitted parts.
        Case("", "0.0.0 1.2.3 99.99.99", not: "1.0.0-rc"),
        Case("   ", "1.2.3", not: "1.0.0-rc"),
        Case("*", "0.0.0 1.2.3", not: "1.0.0-rc"),
        Case("x", "1.2.3"),
        Case("X", "1.2.3"),
        Case("1", "1.0.0 1.99.99", not: "0.9.9 2.0.0 2.0.0-rc 1.0.0-rc"),
        Case("1.x", "1.0.0 1.99.99", not: "0.9.9 2.0.0 2.0.0-0"),
        Case("1.X", "1.5.0", not: "2.0.0"),
        Case("1.*", "1.5.0", not: "2.0.0"),
        Case("1.x.x", "1.5.0", not: "2.0.0"),
        Case("1.*.X", "1.5.0", not: "2.0.0"),
        Case("1.2", "1.2.0 1.2.99", not: "1.3.0 1.1.0 1.3.0-0 1.2.0-rc"),
        Case("1.2.x", "1.2.0 1.2.99", not: "1.3.0 1.1.0"),
        Case("1.2.*", "1.2.7", not: "1.3.0"),
        Case("0.0", "0.0.0 0.0.9", not: "0.1.0"),

        // ~
        Case("~1.2.3", "1.2.3 1.2.99", not: "1.3.0 1.2.2 1.3.0-0 1.2.4-rc"),
        Case("~1.2", "1.2.0 1.2.9", not: "1.3.0 1.1.9"),
        Case("~1", "1.0.0 1.9.9", not: "2.0.0 0.9.9"),
        Case("~1.x", "1.9.9", not: "2.0.0"),
        Case("~0.2.3", "0.2.3 0.2.9", not: "0.3.0 0.2.2"),
        Case("~0", "0.0.0 0.9.9", not: "1.0.0"),
        Case("~ 1.2.3", "1.2.4", not: "1.3.0"),
        Case("~1.2.3-beta.2", "1.2.3-beta.2 1.2.3-beta.4 1.2.3 1.2.9", not: "1.2.3-beta.1 1.2.4-beta.2 1.3.0"),
        Case("~*", "0.0.0 7.0.0", not: "7.0.0-rc"),

        // ^
        Case("^1.2.3", "1.2.3 1.9.0 1.2.99", not: "2.0.0 1.2.2 2.0.0-0 1.3.0-rc"),
        Case("^0.2.3", "0.2.3 0.2.9", not: "0.3.0 0.2.2 1.0.0"),
        Case("^0.0.3", "0.0.3", not: "0.0.4 0.0.2 0.1.0"),
        Case("^0.0.0", "0.0.0", not: "0.0.1"),
        Case("^1.2.x", "1.2.0 1.9.9", not: "2.0.0 1.1.9"),
        Case("^1.2", "1.2.0 1.9.9", not: "2.0.0 1.1.9"),
        Case("^0.0.x", "0.0.0 0.0.9", not: "0.1.0"),
        Case("^0.0", "0.0.0 0.0.9", not: "0.1.0"),
        Case("^0.1", "0.1.0 0.1.9", not: "0.2.0 0.0.9"),
        Case("^0.x", "0.0.0 0.9.9", not: "1.0.0"),
        Case("^0", "0.0.0 0.9.9", not: "1.0.0"),
        Case("^1", "1.0.0 1.9.9", not: "2.0.0 0.9.9"),
        Case("^ 1", "1.9.9", not: "2.0.0"),
        Case("^*", "0.0.0 9.9.9"),
        Case("^1.2.3-beta.2", "1.2.3-beta.2 1.2.3-rc 1.2.3 1.8.0", not: "1.2.3-beta.1 1.2.4-beta.2 2.0.0 2.0.0-beta"),
        Case("^0.0.3-beta", "0.0.3-beta 0.0.3-pr.2 0.0.3", not: "0.0.4 0.0.3-alpha 0.0.4-0"),

        // With a hyphen.
        Case("1.2.3 - 2.3.4", "1.2.3 2.3.4 2.0.0", not: "1.2.2 2.3.5 2.0.0-rc"),
        Case("1.2 - 2.3.4", "1.2.0 2.3.4", not: "1.1.9 2.3.5"),
        Case("1.2.3 - 2.3", "1.2.3 2.3.99", not: "2.4.0 2.4.0-0 1.2.2"),
        Case("1.2.3 - 2", "1.2.3 2.99.99", not: "3.0.0 3.0.0-0"),
        Case("1 - 2", "1.0.0 2.9.9", not: "0.9.9 3.0.0"),
        Case("1.x - 2.x", "1.0.0 2.9.9", not: "0.9.9 3.0.0"),
        Case("* - 2.3.4", "0.0.0 2.3.4", not: "2.3.5"),
        Case("1.2.3 - *", "1.2.3 99.0.0", not: "1.2.2"),
        Case("* - *", "0.0.0 1.0.0"),
        Case("1.0.0   -   2.0.0", "1.5.0", not: "2.0.1"),
        Case("1.2.3-alpha - 1.2.3", "1.2.3-alpha 1.2.3-beta 1.2.3", not: "1.2.3-0 1.2.2 1.2.4"),
        Case("1.0.0 - 1.2.3-rc.2", "1.2.3-rc.1 1.2.3-rc.2 1.2.2", not: "1.2.3-rc.3 1.2.3 1.2.2-rc.1"),
        Case("2.0.0 - 1.0.0", "", not: "1.0.0 1.5.0 2.0.0"),

        // Conjunctions.
        Case(">=1.2.3 <2.0.0", "1.2.3 1.99.0", not: "1.2.2 2.0.0 1.5.0-rc 2.0.0-rc"),
        Case(">1.0 <1.2.5 >=1.1", "1.1.0 1.2.4", not: "1.0.9 1.2.5"),
        Case("^1.2 <1.5", "1.2.0 1.4.9", not: "1.5.0 1.1.0"),
        Case(">= 1.2 < 1.4", "1.2.0 1.3.9", not: "1.4.0"),
        Case(">1.0.0\t<2.0.0", "1.5.0", not: "2.0.0"),
        Case("1.x 1.2.x", "1.2.5", not: "1.3.0"),
        Case("<1.0.0 >2.0.0", "", not: "0.5.0 1.5.0 2.5.0"),
        Case(">=2.0.0-alpha 1.x", "", not: "2.0.0-alpha 2.0.0-beta 1.5.0"),

        // Alternatives.
        Case("1.2.3 || 2.0.0", "1.2.3 2.0.0", not: "1.2.4 1.5.0"),
        Case("<1.0.0 || >=2.0.0", "0.9.9 2.0.0 3.0.0", not: "1.0.0 1.5.0"),
        Case("1.x||3.x", "1.1.0 3.1.0", not: "2.0.0"),
        Case("^1.2 <1.4 || ~2.5 || 4.0.0 - 5.0.0", "1.3.0 2.5.9 4.5.0", not: "1.4.0 2.6.0 5.0.1 3.0.0"),
        Case("1.2.3 ||", "1.2.3 9.9.9"),
        Case("|| 1.2.3", "9.9.9"),
        Case("||", "9.9.9", not: "9.9.9-rc"),

        // Prereleases match only if a comparator of the same group names a prerelease of the same release.
        Case(">1.2.3-alpha.3", "1.2.3-alpha.4 1.2.3-beta 1.2.3 3.4.5", not: "1.2.3-alpha.3 3.4.5-alpha.9"),
        Case(">=1.2.3-alpha.3", "1.2.3-alpha.3 1.2.3-alpha.3.0", not: "1.2.3-alpha.2 1.2.3-alpha"),
        Case("<2.0.0-beta", "1.9.9 2.0.0-alpha", not: "2.0.0-beta 2.0.0 1.9.9-alpha"),
        Case(">=1.0.0 <2.0.0-beta.2", "2.0.0-beta.1 1.0.0", not: "1.0.0-beta.1 2.0.0-beta.2"),
        Case(">1.0.0-alpha || 2.x", "1.0.0-beta 2.0.0", not: "2.0.0-beta"),
        Case("1.0.0-1 - 1.0.0-10", "1.0.0-1 1.0.0-2 1.0.0-10", not: "1.0.0-0 1.0.0-11 1.0.0-a"),
        Case("~1.2.3-99999999999999999999998", "1.2.3-99999999999999999999999 1.2.3-a", not: "1.2.3-1"),

        // The largest numbers.
        Case("\(max).\(max).\(max)", "\(max).\(max).\(max)", not: "1.0.0"),
        Case("^\(max).0.0", "\(max).5.0", not: "1.0.0"),
        Case("~1.\(max).3", "1.\(max).3", not: "2.0.0 1.\(max).2"),
        Case("^0.0.\(max)", "0.0.\(max)", not: "0.1.0"),
        Case("^0.\(max).0", "0.\(max).7", not: "1.0.0"),
        Case(">1.\(max)", "2.0.0", not: "1.\(max).0"),
        Case(">\(max)", "", not: "\(max).\(max).\(max) 1.0.0"),
        Case("<=\(max)", "\(max).\(max).\(max) 0.0.0"),
        Case("<=\(max).\(max)", "\(max).\(max).\(max) 0.0.0"),
    ]

    @Test(arguments: cases) func `A range contains the versions that people expect`(item: Case) throws {
        let range = try VersionRange(item.range)
        for (versions, expected) in [(item.inside, true), (item.outside, false)] {
            for text in versions.split(separator: " ") {
                let version = try #require(SemanticVersion(String(text)))
                #expect(range.contains(version) == expected, "\(text) in \(item.range)")
            }
        }
    }

    /// A text that is not a range, the position of the error, and a word for what was expected there.
    static let refused: [(String, Int, String)] = [
        ("a", 1, "number"), ("v1.2.3", 1, "number"), ("1.2.3.4", 6, "end of the version"), ("1..2", 3, "number"),
        ("1.", 3, "number"), (".1", 1, "number"), ("01.2.3", 1, "zeros"), ("1.02", 3, "zeros"), ("1.2.03", 5, "zeros"),
        ("1.x.3", 5, "x or *"), ("*.1", 3, "x or *"), ("x.x.1", 5, "x or *"), ("1.x-beta", 4, "space"),
        ("1.2-beta", 4, "space"), ("1.2.x-beta", 6, "space"), ("1.2.3-", 6, "prerelease"),
        ("1.2.3-01", 6, "prerelease"),
        ("1.2.3-a..b", 6, "prerelease"), ("1.2.3+", 6, "build"), ("1.2.3beta", 6, "prerelease"), (">", 2, "number"),
        (">=", 3, "number"), ("^", 2, "number"), ("~", 2, "number"), ("=", 2, "number"), ("==1.2.3", 2, "number"),
        ("=>1.2.3", 2, "number"), ("~>1.2.3", 2, "number"), (">>1.0.0", 2, "number"), ("^~1.0.0", 2, "number"),
        (">=1.0.0<2.0.0", 8, "space"), ("1.2.3^2", 6, "space"), ("1.0.0, 2.0.0", 6, "space"), ("1 -2", 4, "hyphen"),
        ("1 - ", 5, "number"), ("- 1", 1, "number"), ("1 - 2 - 3", 7, "stands alone"), ("1 - 2 <3", 7, "stands alone"),
        ("^1 2 - 3", 6, "stands alone"), ("^1 - 2", 4, "number"), ("1 | 2", 3, "||"), ("1 &&2", 3, "number"),
        ("1 ||| 2", 5, "||"), ("latest", 1, "number"), ("1.2.3 ä", 7, "number"), ("1.2.3ä", 6, "space"),
        ("1\n2", 2, "space"), ("18446744073709551616", 1, "2^64"), ("1.18446744073709551616.0", 3, "2^64"),
        ("99999999999999999999999999999999", 1, "2^64"), ("-1", 1, "number"), ("(1.2)", 1, "number"),
        ("\u{0}", 1, "number"),
    ]

    @Test(arguments: refused)
    func `Text that is not a range is refused, with the position and what was expected`(
        text: String, position: Int, word: String
    ) {
        let error = #expect(throws: PluginError.self) { try VersionRange(text) }
        #expect(error?.code == .invalidValue)
        #expect(error?.message.contains("at character \(position):") == true, "\(error?.message ?? "")")
        #expect(error?.message.contains(word) == true, "\(error?.message ?? "")")
    }

    @Test func `A range may have 256 bytes, and a longer one is refused unread`() throws {
        let longest = String(repeating: "1.0.0 ", count: 42) + "1.xx".prefix(3) + " "
        #expect(longest.utf8.count == 256)
        #expect(try VersionRange(longest).contains(SemanticVersion("1.0.0")!))
        let error = #expect(throws: PluginError.self) { try VersionRange(longest + " ") }
        #expect(error?.message.contains("257 bytes long; at most 256") == true)
        #expect(throws: PluginError.self) { try VersionRange(String(repeating: "9", count: 1 << 20)) }
    }

    @Test func `A range is described as it was written`() throws {
        #expect(try VersionRange("^1.2 || >=3 <4").description == "^1.2 || >=3 <4")
        #expect(try VersionRange(" ").description == "*")
        #expect(VersionRange.any.description == "*" && VersionRange.any.contains(SemanticVersion("1.0.0")!))
    }

    @Test func `Random texts are read or refused, and never trap`() {
        let words = [
            "1", "0", "18446744073709551615", ".", "x", "*", "-", " ", "  ", "||", "|", "<", ">", "=", "^", "~", "beta",
            "+",
            "2.3.4", " - ", "ä", "\t",
        ]
        var generator = SystemRandomNumberGenerator()
        let version = SemanticVersion("2.3.4-beta")!
        for _ in 0..<20_000 {
            let text = (0..<Int.random(in: 0...12, using: &generator)).map { _ in words.randomElement()! }.joined()
            _ = (try? VersionRange(text))?.contains(version)
        }
    }
}
