import PluginABI
import PluginHost
import Testing

@Suite struct ReadingJSONTests {
    @Test func `All JSON from outside is read by one reader, whose errors state the position`() {
        let error = #expect(throws: PluginError.self) { try Value(json: "{\"a\": }") }
        #expect(error?.code == .invalidValue)
        #expect(error?.message == "The text is not valid JSON: a value is missing, at byte 6.")
        for count in [512, 513, 514, 100_000] {
            #expect(throws: PluginError.self) { try Value(json: String(repeating: "[", count: count)) }
            #expect(throws: PluginError.self) { try Value(json: String(repeating: "{\"a\":[", count: count)) }
        }
    }
}
