import AsyncHTTPClient
import Foundation
import NIOCore
import PluginABI
import PluginGateway
import PluginHost
import Testing

@Suite struct CallbackTests {
    private let events = [("Accept", "text/event-stream")]

    private func gateway(
        _ configure: (inout GatewayConfiguration, inout HostConfiguration) -> Void = { _, _ in }
    ) async throws -> TestGateway { try await TestGateway([callerModule.build()], configure) }

    @Test func `calls of a callback are events, and the result is the last one`() async throws {
        let gateway = try await gateway()
        let answer = try await gateway.call("Caller/count", "{\"times\": 3, \"then\": \"progress\"}", events)
        #expect(answer.status == 200)
        #expect(answer.header("Content-Type") == "text/event-stream")
        let text =
            (0..<3).map { "event: progress\ndata: [\($0),\"a\\nb\"]\n\n" }.joined()
            + "event: result\ndata: 3\n\n"
        #expect(answer.text == text)
        // With parameters by position, without `Accept`, and as a browser requests it.
        #expect(try await gateway.call("Caller/count", "[3, \"progress\"]").text == text)
        #expect(try await gateway.call("Caller/count?then=progress", "{\"times\": 3}").text == text)
        #expect(try await gateway.get("/count/3?then=x&then=progress", events).text == text)
        try await gateway.end()
    }

    @Test func `an error before the first event has a status, and one after it is the last event`() async throws {
        let gateway = try await gateway()
        for (path, body, status, code) in [
            ("Caller/count", "{\"then\": \"x\"}", 400, "missingParameter"),
            ("Caller/count", "{\"times\": 1}", 400, "missingParameter"),
            ("Caller/count", "{\"times\": 1, \"then\": 7}", 400, "mistypedParameter"),
            ("Caller/count", "{\"times\": 1, \"then\": \"result\"}", 400, "mistypedParameter"),
            ("Caller/count", "{\"times\": 1, \"then\": \"a\\nb\"}", 400, "mistypedParameter"),
            ("Caller/nothing", "{}", 404, "noRoute"), ("Caller/fail", "{\"then\": \"x\"}", 200, nil),
            ("Caller/count", "{\"times\": -1, \"then\": \"x\"}", 422, "negative"),
        ] {
            let answer = try await gateway.call(path, body, events)
            #expect(answer.status == status, "\(body)")
            #expect(answer.code == code, "\(body)")
        }
        let failed = try await gateway.call("Caller/fail", "{\"then\": \"x\"}", events).text
        #expect(failed.hasPrefix("event: x\ndata: [1]\n\nevent: error\ndata: {\"code\":\"outOfStock\","), "\(failed)")
        let refused = try await gateway.call(
            "Caller/count", "{\"times\": 1, \"then\": \"x\"}", [("Accept", "application/json")])
        #expect(refused.status == 406)
        #expect(refused.code == "notAcceptable")
        try await gateway.end()
    }

    @Test func `a call without callbacks, and a cursor, are events for those who ask for them`() async throws {
        let gateway = try await TestGateway([labModule.build()])
        #expect(try await gateway.call("Lab/number", "{\"n\": 1}", events).text == "event: result\ndata: 1\n\n")
        #expect(
            try await gateway.call("Lab/number", "{\"n\": 1}", [("Accept", "text/event-stream, */*")]).text == "1")
        #expect(
            try await gateway.call("Lab/number", "{\"n\": 1}", [("Accept", "text/event-stream;q=0")]).text == "1")
        #expect(
            try await gateway.call("Lab/cursor", "{\"count\": 2}", events).text
                == "event: item\ndata: 2\n\nevent: item\ndata: 1\n\nevent: result\ndata: null\n\n")
        try await gateway.end()
    }

    @Test func `a callback that finds no room fails, and the client gets the number of missed events`() async throws {
        let gateway = try await gateway { configuration, _ in configuration.callbackBuffer = 2 }
        // The action calls on one thread without a pause; the reply states how many calls were accepted.
        let answer = try await gateway.call("Caller/flood", "{\"times\": 20000, \"then\": \"x\"}", events).text
        let accepted = answer.components(separatedBy: "event: x\n").count - 1
        #expect(answer.hasSuffix("event: result\ndata: \(accepted)\n\n"))
        let missed = answer.components(separatedBy: "event: missed\ndata: {\"count\":").dropFirst()
            .compactMap { Int($0.prefix { $0.isNumber }) }.reduce(0, +)
        #expect(accepted >= 2 && missed > 0)
        #expect(accepted + missed == 20000)
        let large = try await gateway.call("Caller/large", "{\"then\": \"x\"}", events).text
        #expect(large == "event: missed\ndata: {\"count\":1}\n\nevent: result\ndata: \"overloaded\"\n\n")
        try await gateway.end()
    }

    @Test func `after its call, a callback is over, and released with its last holder`() async throws {
        let gateway = try await gateway()
        let kept = try await gateway.call("Caller/keep", "{\"then\": \"x\"}", events)
        #expect(kept.text == "event: result\ndata: \"kept\"\n\n")
        #expect(try await gateway.call("Caller/use", "{}").text == "\"cancelled\"")
        #expect(await becomesTrue { gateway.gateway.host.generations.allSatisfy { $0.objects == 0 } })
        try await gateway.end()
    }

    @Test func `a stream has the place of one call, until it ends or its client leaves`() async throws {
        let gateway = try await TestGateway([callerModule.build(), labModule.build()]) { configuration, host in
            (configuration.callLimit, configuration.heartbeat) = (1, .milliseconds(50))
            host.shutdownTimeout = .milliseconds(200)
        }
        for _ in 0..<3 {
            #expect(
                await becomesTrue {
                    try await gateway.call("Caller/count", "{\"times\": 1, \"then\": \"x\"}", events).text
                        .hasSuffix("event: result\ndata: 1\n\n")
                })
            #expect(
                await becomesTrue {
                    try await gateway.call("Lab/cursor", "{\"count\": 1}", events).text
                        .hasSuffix("data: 1\n\nevent: result\ndata: null\n\n")
                })
        }
        #expect(await becomesTrue { try await gateway.get("/metrics").text.contains("gateway_calls_in_flight 0.0") })
        let (socket, _) = try await hang(gateway)
        #expect(try await gateway.call("Lab/number", "{\"n\": 1}").code == "overloaded")
        socket.close()
        #expect(await becomesTrue { try await gateway.call("Lab/number", "{\"n\": 1}").text == "1" })
        try await gateway.end()
    }

    /// Makes a call that hangs, and returns its connection, with what is sent up to the first heartbeat.
    private func hang(_ gateway: TestGateway) async throws -> (RawSocket, String) {
        let body = "{\"then\": \"x\"}"
        let socket = try RawSocket(port: gateway.port)
        try socket.send(
            "POST /call/Caller/hang HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                + "Accept: text/event-stream\r\nContent-Length: \(body.utf8.count)\r\n\r\n\(body)")
        let text = try await onThread {
            var text = ""
            while !text.contains(":\n\n"), let part = socket.read() { text += String(decoding: part, as: UTF8.self) }
            return text
        }
        return (socket, text)
    }

    @Test func `a client that leaves cancels the call, and its callbacks fail`() async throws {
        let gateway = try await gateway { configuration, host in
            (configuration.heartbeat, host.shutdownTimeout) = (.milliseconds(50), .milliseconds(200))
        }
        let (socket, text) = try await hang(gateway)
        // No event has been sent, only the head and heartbeats.
        #expect(text.hasPrefix("HTTP/1.1 200 "))
        #expect(!text.contains("event:"))
        socket.close()
        #expect(await becomesTrue { try await gateway.get("/metrics").text.contains("code=\"cancelled\"} 1") })
        #expect(await becomesTrue { try await gateway.get("/metrics").text.contains("gateway_calls_in_flight 0.0") })
        #expect(await becomesTrue { try await gateway.call("Caller/use", "{}").text == "\"cancelled\"" })
        try await gateway.end()
    }

    @Test func `open events hold up the end only for a bounded time`() async throws {
        let gateway = try await gateway { configuration, host in
            (configuration.heartbeat, host.shutdownTimeout) = (.milliseconds(50), .milliseconds(200))
            configuration.drainTimeout = .milliseconds(200)
        }
        async let answer = gateway.call("Caller/hang", "{\"then\": \"x\"}", events)
        #expect(await becomesTrue { try await gateway.get("/metrics").text.contains("gateway_calls_in_flight 1.0") })
        try await gateway.end()
        let text = try await answer.text
        #expect(text.contains("hostStopping"), "\(text)")
    }
}

/// A module that calls the callbacks of its callers.
private let callerModule: CModule = {
    var module = CModule(name: "Caller")
    let remote = "\"remote\": true, "
    module.code = """
        static _Atomic(plugin_object) kept;
        static char outcome[64];
        static void remember(void *data, const plugin_value *value, const plugin_error *error) {
            (void)data, (void)value;
            strcpy(outcome, "ok");
            if (error) {
                uint32_t count = error->code.count < 63 ? error->code.count : 63;
                memcpy(outcome, error->code.bytes, count);
                outcome[count] = 0;
            }
        }
        /* Calls a callback, and returns whether it succeeded. */
        static int call_back(const plugin_call *call, plugin_object object, const plugin_value *values, uint32_t count) {
            plugin_entry entries[2] = {0};
            for (uint32_t i = 0; i < count; i++) entries[i].value = values[i];
            plugin_request request = plugin_request_object(object, text("call"), entries, count);
            host->perform(host, call->token, &request, remember, NULL);
            return strcmp(outcome, "ok") == 0;
        }
        """
    module.targets = [
        .init(
            name: "Caller",
            actions: [
                .init(
                    name: "count", manifest: remote, parameters: ["times": "int", "then": "object"],
                    body: """
                        if (arguments[0].as.integer < 0) { plugin_fail(host, call, "negative", "It is negative."); return; }
                        for (int64_t i = 0; i < arguments[0].as.integer; i++) {
                            plugin_value values[] = {plugin_value_int(i), plugin_value_text("a\\nb")};
                            call_back(call, arguments[1].as.object, values, 2);
                        }
                        reply_int(call->token, arguments[0].as.integer);
                        """),
                .init(
                    name: "flood", manifest: remote, parameters: ["times": "int", "then": "object"],
                    body: """
                        int64_t accepted = 0;
                        for (int64_t i = 0; i < arguments[0].as.integer; i++)
                            accepted += call_back(call, arguments[1].as.object, NULL, 0);
                        reply_int(call->token, accepted);
                        """),
                .init(
                    name: "large", manifest: remote, parameters: ["then": "object"],
                    body: """
                        uint32_t size = 2 << 20;
                        char *text = malloc(size + 1);
                        memset(text, 'x', size);
                        text[size] = 0;
                        plugin_value value = plugin_value_text(text);
                        call_back(call, arguments[0].as.object, &value, 1);
                        free(text);
                        reply(call, outcome);
                        """),
                .init(
                    name: "fail", manifest: remote, parameters: ["then": "object"],
                    body: """
                        plugin_value value = plugin_value_int(1);
                        call_back(call, arguments[0].as.object, &value, 1);
                        plugin_fail(host, call, "outOfStock", "No more.");
                        """),
                .init(
                    name: "keep", manifest: remote, parameters: ["then": "object"],
                    body: """
                        host->object_retain(host, arguments[0].as.object);
                        kept = arguments[0].as.object;
                        reply(call, "kept");
                        """),
                .init(
                    name: "hang", manifest: remote + "\"async\": true, ", parameters: ["then": "object"],
                    body: """
                        host->object_retain(host, arguments[0].as.object);
                        kept = arguments[0].as.object;
                        """),
                .init(
                    name: "use", manifest: remote,
                    body: """
                        plugin_object object = kept;
                        call_back(call, object, NULL, 0);
                        if (strcmp(outcome, "cancelled") == 0) host->object_release(host, object);
                        reply(call, outcome);
                        """),
            ])
    ]
    module.moreManifest = """
        "routes": [{"pattern": "https://*/count/:times", "action": "Caller/count"}],
        """
    return module
}()
