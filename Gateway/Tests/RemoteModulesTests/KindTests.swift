import Foundation
import PluginABI
import PluginHost
import RemoteModules
import Testing

/// The values that pass from one host to the other.
@Suite struct KindTests {
    @Test func `a call is the same line, and parameters and results keep their kinds`() async throws {
        let gateway = try await TestGateway([bModule().build()])
        let mount = try await TestMount(of: gateway)
        #expect(try await mount.perform("greet", ["name": "Ada"]) == "Ada")
        #expect(try await mount.perform("greet", ["Ada"]) == "Ada")
        #expect(try await mount.host.call("B", "later", ["name": [1, "x"] as Value]) == [1, "x"])
        let values: [Value] = [
            nil, true, -1, .int(.max), .int(.min), 1.5, "", "ä\u{0}\"\n", [], [1, [nil, "x"]], [:],
            ["a": ["b": 2.25], "": true],
        ]
        for value in values { #expect(try await mount.perform("echo", ["value": value]) == value) }
        // JSON numbers have the declared kind.
        #expect(try await mount.perform("real", ["n": 3]) == .double(3))
        #expect(
            try await mount.perform("item", ["item": ["id": "x", "price": .double(2)] as Value])
                == ["id": "x", "price": .double(2)])
        #expect(try await mount.perform("rest", ["b": [1] as Value, "c": "x"]) == [5, ["b": [1], "c": "x"]])
        #expect(try await mount.perform("rest") == [5, [:]])
        try await mount.end()
        try await gateway.end()
    }

    @Test func `bytes are sent as they are if there is one parameter of that kind`() async throws {
        let gateway = try await TestGateway([bModule().build()]) { configuration, _ in
            configuration.bodyLimit = 3_000_000
        }
        let mount = try await TestMount(of: gateway)
        // In base64, the bytes would exceed the limit of the gateway.
        let large = Bytes((0..<2_900_000).map { UInt8(truncatingIfNeeded: $0 &* 7) })
        #expect(try await mount.perform("bytes", ["data": .bytes(large)]) == .bytes(large))
        #expect(try await mount.perform("bytes", ["data": .bytes(Bytes([]))]) == .bytes(Bytes([])))
        let base64 = { (bytes: [UInt8]) in Value.string(Bytes(bytes).base64) }
        #expect(
            try await mount.perform("upload", ["name": "a b&c=ü/?", "data": .bytes(Bytes([0, 255]))])
                == ["a b&c=ü/?", base64([0, 255]), 7, nil])
        #expect(
            try await mount.perform("upload", ["name": "\n", "data": .bytes(Bytes([1])), "note": "+"])
                == ["\n", base64([1]), 7, "+"])
        #expect(
            try await mount.perform("two", ["a": .bytes(Bytes([1])), "b": .bytes(Bytes([2]))]) == [
                base64([1]), base64([2]),
            ])
        let tooLarge = await mount.error("bytes", ["data": .bytes(Bytes((0..<3_100_000).map { _ in 0 }))])
        #expect(tooLarge?.code == "bodyTooLarge")
        try await mount.end()
        try await gateway.end()
    }

    @Test func `what JSON cannot carry is refused before it is sent`() async throws {
        let gateway = try await TestGateway([bModule().build()])
        let mount = try await TestMount(of: gateway)
        let callback = mount.host.callback { _ in .null }.value
        let values: [Value] = [
            .bytes(Bytes([1])), [.bytes(Bytes([1]))], .double(.infinity), .double(.nan), ["a": .double(-.infinity)],
            callback, [callback],
        ]
        for value in values { #expect(await mount.error("echo", ["value": value])?.code == "notRepresentable") }
        let page = await mount.error("page")
        #expect(page?.code == "notRepresentable")
        #expect(page?.message.contains("“Page”") == true)
        #expect(mount.remote.status.sent == 0)
        try await mount.end()
        try await gateway.end()
    }

    @Test func `errors keep their code, message and module`() async throws {
        let gateway = try await TestGateway([bModule().build()])
        let mount = try await TestMount(of: gateway)
        let error = await mount.error("fail")
        #expect(error == PluginError("outOfStock", "No more %s %n.", source: "ModB"))
        // The host checks parameters as for every other module, and nothing is sent.
        #expect(await mount.error("greet")?.code == .missingParameter)
        #expect(await mount.error("greet", ["name": 5])?.code == .mistypedParameter)
        #expect(await mount.error("nothing")?.code == .unknownAction)
        #expect(await mount.error("secret")?.code == .unknownAction)
        #expect(mount.remote.status.sent == 1)
        #expect(mount.remote.status.unanswered == 0)
        try await mount.end()
        #expect(await mount.error("greet", ["name": "x"])?.code == .hostStopped)
        try await gateway.end()
    }

    @Test func `a module that calls B does not see where it is`() async throws {
        let gateway = try await TestGateway([bModule().build()])
        var caller = CModule(name: "Caller")
        caller.targets = [
            .init(
                name: "Caller",
                actions: [
                    .init(
                        name: "greet", manifest: "\"remote\": true, ",
                        body: """
                            plugin_entry name = {text("name"), plugin_value_text("Ada")};
                            plugin_request request = plugin_request_action(text("B"), text("greet"), &name, 1);
                            host->perform(host, call->token, &request, pass_on, (void *)call->token);
                            """)
                ])
        ]
        let own = try await TestGateway([caller.build()])
        let mount = try await TestMount(of: gateway, in: own.gateway.host)
        #expect(try await own.call("Caller/greet", "{}").text == "\"Ada\"")
        // Mounted targets are not remote by themselves.
        #expect(try await own.call("B/greet", "{\"name\": \"x\"}").status == 404)
        #expect(try await !own.get("/modules.json").text.contains("\"B\""))
        try await mount.end()
        try await own.end()
        try await gateway.end()
    }
}
