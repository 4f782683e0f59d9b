import PluginABI
import PluginHost
import Testing

@Suite struct ReadingJSONTests {
    @Test func `The position in a text of several lines is a line and a column`() {
        let error = #expect(throws: PluginError.self) { try Value(json: "{\n  \"a\": [\n    1,\n  ]\n}") }
        #expect(
            error?.message
                == "The text is not valid JSON: a “,” follows the last element, at line 3, column 6.")
    }

    @Test func `All JSON from outside is read by one reader, whose errors state the position`() {
        let error = #expect(throws: PluginError.self) { try Value(json: "{\"a\": }") }
        #expect(error?.code == .invalidValue)
        #expect(error?.message == "The text is not valid JSON: a value is missing, at byte 6.")
        for count in [512, 513, 514, 100_000] {
            #expect(throws: PluginError.self) { try Value(json: String(repeating: "[", count: count)) }
            #expect(throws: PluginError.self) { try Value(json: String(repeating: "{\"a\":[", count: count)) }
        }
    }

    @Test(arguments: [
        ("{\"a\": 1, \"a\": 2}", "The text has the name “a” twice, at line 1, column 10. Use each name once."),
        ("{\"a\": 1} x", "The text is not valid JSON: there is text after the value, at line 1, column 10."),
        ("", "The text is empty."),
    ])
    func `JSON of other programs is read strictly`(text: String, message: String) {
        let bytes = Array(text.utf8)
        let error = #expect(throws: PluginError.self) { try bytes.withUnsafeBytes { try Value(strictJSON: $0) } }
        #expect(error?.code == .invalidValue)
        #expect(error?.message == message)
    }

    @Test func `Invalid UTF-8 is refused, and 64 bits are kept`() throws {
        let invalid: [UInt8] = [0x22, 0xFF, 0x22]
        #expect(throws: PluginError.self) { try invalid.withUnsafeBytes { try Value(strictJSON: $0) } }
        let valid = Array("[9223372036854775807, 1e400]".utf8)
        #expect(throws: PluginError.self) { try valid.withUnsafeBytes { try Value(strictJSON: $0) } }
        for text in ["-9223372036854775809", "3.00000000000000000001", "9007199254740993.5"] {
            let lossy = Array(text.utf8)
            #expect(throws: PluginError.self, "\(text)") { try lossy.withUnsafeBytes { try Value(strictJSON: $0) } }
        }
        let whole = Array("[1e30, 0.1, 3.0]".utf8)
        #expect(try whole.withUnsafeBytes { try Value(strictJSON: $0) } == [.double(1e30), .double(0.1), .int(3)])
        let largest = Array("[9223372036854775807]".utf8)
        #expect(try largest.withUnsafeBytes { try Value(strictJSON: $0) } == [.int(.max)])
    }
}
