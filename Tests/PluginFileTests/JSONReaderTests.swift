import PluginABI
import Testing

@testable import PluginFile
@testable import TestSupport

@Suite struct `Reading JSON` {
    private func read(_ text: String, _ rules: JSONReader.Rules = .value) throws(MalformedText) -> Value {
        try Array(text.utf8).withUnsafeBytes { bytes in
            Result { () throws(MalformedText) in try JSONReader.read(bytes, rules) }
        }.get()
    }

    @Test(arguments: [
        ("1", Value.int(1)), ("-0", 0), ("1.0", 1), ("1e2", 100), ("0.5", 0.5), ("9223372036854775807", .int(.max)),
        ("9223372036854775808", .double(9_223_372_036_854_775_808)), ("true", true), (" null ", nil),
        ("\"\"", ""), (#""a\n\u0041\ud83d\ude00\/""#, "a\nA😀/"), ("[]", .list([])),
        ("[1, [2]]", .list([1, .list([2])])),
        (#"{"a": 1, "a": 2, "b": {}}"#, .map(["a": 1, "b": .map([:])])), ("\u{FEFF}1", 1),
    ]) func `A value is read as it is written`(text: String, value: Value) throws {
        #expect(try read(text) == value)
    }

    @Test(arguments: [
        ("9007199254740993e0", Value.int(9_007_199_254_740_993)), ("1e18", .int(1_000_000_000_000_000_000)),
        ("3.000", 3), ("-9223372036854775808", .int(.min)), ("-9223372036854775808.0", .int(.min)),
        ("-9223372036854775809", .double(-9_223_372_036_854_775_808)), ("1200e-2", 12), ("0.012e3", 12),
        ("0e99999999999999999999", 0), ("4503599627370497.5", 4_503_599_627_370_497.5),
        ("3.00000000000000000001", .double(3)), ("1e-400", .double(0)), ("1e19", .double(1e19)),
    ]) func `Whether a number is an int depends on its digits`(text: String, value: Value) throws {
        #expect(try read(text) == value)
    }

    @Test(arguments: [
        ("", 0), ("[1,]", 2), ("[1 2]", 3), ("{\"a\" 1}", 5), ("{1}", 1), ("01", 1), ("1.", 2), ("-", 1), ("1e999", 5),
        ("nul", 0), ("\"a", 2), ("\"\t\"", 1), (#""\x""#, 3), (#""\ud800""#, 7), (#""\u00g0""#, 3), ("1 2", 2),
    ]) func `Text that is not JSON is refused, with the position`(text: String, position: Int) {
        let failure = #expect(throws: MalformedText.self) { try read(text) }
        #expect(failure?.message.hasSuffix("at byte \(position).") == true, "\(failure?.message ?? "")")
    }

    private func nested(_ depth: Int) -> String {
        String(repeating: "[", count: depth) + String(repeating: "]", count: depth)
    }

    @Test func `128 levels are read, and in a message enough for a value of that depth`() throws {
        #expect(try read(nested(128)).kind == .list)
        #expect(throws: MalformedText.self) { try read(nested(129)) }
        let message = try read("{\"id\":1,\"params\":{\"parameters\":{\"x\":\(nested(128))}}}", .message)
        #expect(message["params"]?["parameters"]?["x"]?.kind == .list)
        #expect(throws: MalformedText.self) { try read(nested(137), .message) }
    }

    @Test func `A duplicate name is refused if the rules say so`() throws {
        #expect(try read(#"[{"a": 1, "a": 2}]"#) == [["a": 1]])
        let failure = #expect(throws: MalformedText.self) { try read(#"[{"a": 1, "a": 2}]"#, .file) }
        #expect(failure?.message == "has the name “a” twice, at byte 10. Use each name once.")
    }

    @Test func `A comma after the last element is named`() {
        for (text, place) in [("[1, 2,]", 5), ("{\"a\":1,}", 6), ("[1, 2 , ]", 6)] {
            let failure = #expect(throws: MalformedText.self) { try read(text) }
            #expect(
                failure?.message == "is not valid JSON: a “,” follows the last element, at byte \(place).")
        }
    }

    /// Text that makes a careless reader slow, or makes it trap.
    static let hostile: [(name: String, text: String)] = [
        ("open brackets", String(repeating: "[", count: 1 << 20)),
        ("open objects", String(repeating: "{\"a\":[", count: 1 << 17)),
        ("closed brackets", String(repeating: "]", count: 1 << 20)),
        ("digits", String(repeating: "1", count: 1 << 20)),
        ("zeros", "1" + String(repeating: "0", count: 1 << 20)),
        ("a fraction", "0." + String(repeating: "0", count: 1 << 20) + "1"),
        ("an exponent", "1e" + String(repeating: "9", count: 1 << 20)),
        ("a negative exponent", "1e-" + String(repeating: "9", count: 1 << 20)),
        ("escapes", "\"" + String(repeating: "\\n", count: 1 << 19) + "\""),
        ("one name", "{" + String(repeating: "\"a\":1,", count: 1 << 17) + "\"b\":1}"),
        ("a name of marks", "{\"" + String(repeating: "\u{315}\u{300}\u{323}", count: 1 << 17) + "\":1}"),
        ("text of marks", "\"" + String(repeating: "\u{315}\u{300}\u{323}", count: 1 << 17) + "\""),
        ("escaped marks", "\"" + String(repeating: "\\u0315\\u0300", count: 1 << 16) + "\""),
    ]

    @Test(arguments: hostile.map(\.name)) func `A megabyte of anything is read or refused in seconds`(
        name: String
    ) throws {
        let text = try #require(Self.hostile.first { $0.name == name }).text
        let start = threadTime()
        _ = try? read(text)
        // Takes a second in a debug build; a reader that takes quadratic time needs half an hour.
        #expect(threadTime() - start < .seconds(60))
    }

    @Test func `256 combining marks in a row are read, and no more`() throws {
        func marks(_ count: Int) -> String { "\"a" + String(repeating: "\u{300}", count: count) + "b\"" }
        let text = try read(marks(256)).string
        #expect(text?.unicodeScalars.count == 258)
        let failure = #expect(throws: MalformedText.self) { try read(marks(257)) }
        #expect(failure?.message.contains("256 combining marks") == true)
        #expect(throws: MalformedText.self) { try read("{\(marks(257)):1}") }
    }
}
