import PluginABI
import PluginGateway
import PluginHost
import Synchronization
import Testing

/// Interceptors of calls that arrive over HTTP.
@Suite struct InterceptionTests {
    @Test func `interceptors see calls and requests of routes, and change parameters, results and errors`() async throws
    {
        let gateway = try await TestGateway(TestGateway.samples + [labModule.build()])
        let host = gateway.gateway.host
        let seen = Mutex<[String]>([])
        let sums = host.intercept(.action("C", "add")) { call, next in
            seen.withLock { $0.append("\(call.target)/\(call.action) \(call.origin) \(call.route ?? "-")") }
            var call = call
            if call.parameters["a"] == 0 { throw PluginError(.refused, "Not zero.") }
            call.parameters["b"] = 40
            return ["sum": try next(call)]
        }
        let items = host.intercept(.route("https://*/shop/:id")) { call, next async throws in
            seen.withLock { $0.append("\(call.target)/\(call.action) \(call.origin) \(call.route ?? "-")") }
            var call = call
            call.parameters["id"] = "other"
            return try await next(call)
        }
        #expect(try await gateway.call("C/add", "{\"a\": 2}").json == ["sum": 42])
        let refused = try await gateway.call("C/add", "{\"a\": 0}")
        #expect(refused.status == 403 && refused.code == "refused")
        #expect(try await gateway.get("/shop/7").json == ["other", 1])
        #expect(
            seen.withLock { $0 } == [
                "C/add remote -", "C/add remote -", "Lab/item remote https://*/shop/:id",
            ])
        sums.remove()
        items.remove()
        #expect(try await gateway.call("C/add", "{\"a\": 2}").text == "3")
        #expect(try await gateway.get("/shop/7").json == ["7", 1])
        try await gateway.end()
    }
}
