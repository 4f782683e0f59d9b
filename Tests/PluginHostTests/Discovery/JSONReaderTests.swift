import PluginABI
import Testing

@testable import PluginHost

@Suite struct `Reading JSON` {
    private func read(_ text: String) throws(JSONReader.Failure) -> Value {
        try Array(text.utf8).withUnsafeBytes { bytes in
            Result { () throws(JSONReader.Failure) in try JSONReader.read(bytes) }
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
        ("", 0), ("[1,]", 3), ("[1 2]", 3), ("{\"a\" 1}", 5), ("{1}", 1), ("01", 1), ("1.", 2), ("-", 1), ("1e999", 5),
        ("nul", 0), ("\"a", 2), ("\"\t\"", 1), (#""\x""#, 3), (#""\ud800""#, 7), (#""\u00g0""#, 3), ("1 2", 2),
    ]) func `What is no JSON is refused, with the position`(text: String, position: Int) {
        let failure = #expect(throws: JSONReader.Failure.self) { try read(text) }
        #expect(failure?.message.hasSuffix("at character \(position).") == true, "\(failure?.message ?? "")")
    }

    @Test func `128 levels are read, and no more`() throws {
        func nested(_ depth: Int) -> String {
            String(repeating: "[", count: depth) + String(repeating: "]", count: depth)
        }
        #expect(try read(nested(128)).kind == .list)
        #expect(throws: JSONReader.Failure.self) { try read(nested(129)) }
    }
}
