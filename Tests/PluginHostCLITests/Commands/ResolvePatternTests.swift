import PluginABI
import PluginHost
import Testing

@testable import TestSupport

/// `pluginhost resolve --pattern`, which needs no host.
@Suite struct ResolvePatternTests {
    @Test func `resolve says what a pattern matches, and where it is invalid`() throws {
        func resolve(_ pattern: String, _ url: String, _ more: String...) throws -> ProgramProcess.Outcome {
            try ProgramProcess(["resolve", "--pattern", pattern, url, "--json"] + more).wait()
        }
        for (pattern, url, expected) in [
            ("home/:x", "home/7?y=1", #"{"matched":true,"parameters":{"x":"7"}}"#),
            ("home/:x", "app://home/7", #"{"matched":true,"parameters":{"x":"7"}}"#),
            ("app://home/:x", "home/7", #"{"matched":true,"parameters":{"x":"7"}}"#),
            ("home/:x", "shop://home/7", #"{"matched":false}"#),
            ("localhost:8080/:q", "localhost:8080/q", #"{"matched":true,"parameters":{"q":"q"}}"#),
            ("app://shop/:id{/:page}?", "app://shop/7", #"{"matched":true,"parameters":{"id":"7","page":null}}"#),
            ("/files/*/(\\d+)", "/files/a/b/3", #"{"matched":true,"parameters":{"0":"a/b","1":"3"}}"#),
            ("/files/*", "/other", #"{"matched":false}"#),
        ] {
            let outcome = try resolve(pattern, url)
            let expected = try Value(json: expected)
            #expect(outcome.code == 0 && outcome.json == expected, "\(outcome.output)")
        }
        for url in ["home/7?y=1", "shop://home/7"] {
            #expect(
                try resolve("home/:x", url, "--scheme", "Shop", "--scheme", "app").json?["parameters"] == ["x": "7"])
        }
        #expect(try resolve("home/:x", "app://home/7", "--scheme", "shop").json?["matched"] == false)
        let long = "/a/" + String(repeating: "b", count: 16_382)
        let tooLong = try resolve("/a/:b", long)
        #expect(tooLong.json?["error"]?["code"] == "invalidURL", "\(tooLong.output)")
        #expect(tooLong.json?["error"]?["message"]?.string?.contains("--url-length") == true)
        #expect(try resolve("/a/:b", long, "--url-length", "20000").json?["matched"] == true)
        #expect(try resolve("/a/:b", "/a/b", "--url-length", "255").code == 64)
        #expect(try resolve("/a/:b", "/a/b", "--local").code == 64)
        let wrong = try resolve("/a/(", "/a")
        #expect(wrong.code == 65 && wrong.json?["error"]?["code"] == "invalidPattern")
        #expect(wrong.json?["error"]?["message"]?.string?.contains("at position 3") == true)
        let text = try ProgramProcess.run("resolve", "--pattern", "app://shop/:id", "app://shop/7")
        #expect(text.output == "id: 7\n")
    }
}
