import PluginGateway
import PluginHost
import Testing

@Suite struct CORSTests {
    private let page = "https://shop.example"

    private func gateway(_ access: GatewayConfiguration.Access? = nil) async throws -> TestGateway {
        try await TestGateway(TestGateway.samples) { configuration, _ in
            configuration.cors = CORS(origins: ["https://Shop.example", "http://[::1]:8000"])
            configuration.cors?.headers = ["X-Request-ID"]
            if let access { configuration.access = access }
        }
    }

    @Test func `a page of an allowed origin can ask, and call`() async throws {
        let gateway = try await gateway()
        let asked = try await gateway.ask(
            "OPTIONS", "/call/C/add",
            headers: [
                ("Origin", page), ("Access-Control-Request-Method", "POST"), ("Sec-Fetch-Site", "cross-site"),
            ])
        #expect(asked.status == 204)
        #expect(asked.header("Access-Control-Allow-Origin") == page)
        #expect(asked.header("Access-Control-Allow-Methods") == "GET, HEAD, POST, PUT, PATCH, DELETE")
        #expect(asked.header("Access-Control-Allow-Headers")?.contains("Content-Type") == true)
        #expect(asked.header("Access-Control-Allow-Headers")?.hasSuffix("X-Request-ID") == true)
        #expect(asked.header("Access-Control-Max-Age") == "600")
        let called = try await gateway.call(
            "C/add", "{\"a\": 1}", [("Origin", page), ("Sec-Fetch-Site", "cross-site")])
        #expect(called.text == "2")
        #expect(called.header("Access-Control-Allow-Origin") == page)
        #expect(called.header("Vary") == "Origin")
        // The page may read errors, too.
        let failed = try await gateway.call("C/add", "{}", [("Origin", page)])
        #expect(failed.status == 400)
        #expect(failed.header("Access-Control-Allow-Origin") == page)
        try await gateway.end()
    }

    @Test func `pages of other origins are kept out, and so are all of them without CORS`() async throws {
        let gateway = try await gateway()
        for origin in ["https://evil.example", "http://shop.example", "https://shop.example:444", "null"] {
            let headers = [("Origin", origin), ("Access-Control-Request-Method", "POST")]
            let asked = try await gateway.ask("OPTIONS", "/call/C/add", headers: headers)
            #expect(asked.status == 403, "\(origin)")
            #expect(asked.header("Access-Control-Allow-Origin") == nil)
            #expect(try await gateway.call("C/add", "{\"a\": 1}", headers).status == 403)
        }
        // No browser sends this request.
        #expect(try await gateway.ask("OPTIONS", "/call/C/add", headers: [("Origin", page)]).status == 405)
        try await gateway.end()
        let without = try await TestGateway(TestGateway.samples)
        let asked = try await without.ask(
            "OPTIONS", "/call/C/add", headers: [("Origin", page), ("Access-Control-Request-Method", "POST")])
        #expect(asked.status == 403)
        #expect(asked.header("Access-Control-Allow-Origin") == nil)
        #expect(asked.header("Vary") == nil)
        try await without.end()
    }

    @Test func `origins are schemes with hosts`() {
        for origin in ["https://a.example", "http://localhost:8000", "http://[::1]:8000"] {
            #expect(CORS(origins: [origin]) != nil, "\(origin)")
        }
        for origin in ["*", "a.example", "https://", "https://a.example/", "ftp://a", "https://a b", "null"] {
            #expect(CORS(origins: [origin]) == nil, "\(origin)")
        }
    }
}
