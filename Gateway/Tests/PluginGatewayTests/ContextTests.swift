import Foundation
import InMemoryTracing
import PluginABI
import PluginGateway
import PluginHost
import Synchronization
import Testing

/// The trace and the caller that modules see, and the methods of their routes.
@Suite struct ContextTests {
    private let trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

    @Test func `modules see the trace of the request, and the name of the token`() async throws {
        let file = try makeFolder() + "/tokens"
        try Data("ada 0123456789abcdef\nfedcba9876543210\n".utf8).write(to: URL(filePath: file))
        chmod(file, 0o600)
        let access = GatewayConfiguration.Access.tokens(try BearerTokens(file: file))
        let gateway = try await TestGateway([contextModule.build()]) { configuration, _ in
            configuration.access = access
        }
        func call(_ headers: [(String, String)], _ token: String = "0123456789abcdef") async throws -> String {
            try await gateway.call("Context/read", "{}", headers + [("Authorization", "Bearer \(token)")]).text
        }
        let headers = [("traceparent", trace), ("tracestate", "shop=1")]
        #expect(try await call(headers) == "\"\(trace) shop=1 ada\"")
        #expect(try await call([]) == "\"  ada\"")
        #expect(try await call([("traceparent", "00-xyz")]) == "\"  ada\"")
        #expect(try await call([], "fedcba9876543210") == "\"none\"")
        let route = try await gateway.get("/context", headers + [("Authorization", "Bearer 0123456789abcdef")])
        #expect(route.text == "\"\(trace) shop=1 ada\"")
        let events = try await call(headers + [("Accept", "text/event-stream")])
        #expect(events == "event: result\ndata: \"\(trace) shop=1 ada\"\n\n")
        try await gateway.end()
    }

    @Test func `calls of modules to modules have spans in the trace of the request`() async throws {
        let tracer = W3CTracer()
        let gateway = try await TestGateway(TestGateway.samples, tracer: tracer)
        #expect(try await gateway.call("A/price", "{\"key\": \"apple\"}", [("traceparent", trace)]).status == 200)
        // A request that carries no trace begins one.
        #expect(try await gateway.call("A/price", "{\"key\": \"pear\"}").status == 200)
        let spans = tracer.memory.finishedSpans
        let own = spans.filter { $0.traceID == "0af7651916cd43dd8448eb211c80319c" }
        #expect(own.map(\.operationName) == ["A/currencyName", "B/format", "A/price"])
        #expect(own.map(\.kind) == [.internal, .internal, .server])
        #expect(own[0].parentSpanID == own[1].spanID)
        #expect(own[1].parentSpanID == own[2].spanID)
        #expect(own[2].parentSpanID == "b7ad6b7169203331")
        let others = spans.filter { $0.traceID != own[0].traceID }
        #expect(others.map(\.operationName) == own.map(\.operationName))
        #expect(Set(others.map(\.traceID)).count == 1)
        try await gateway.end()
    }

    @Test func `with client certificates, modules see the subject`() async throws {
        let folder = try makeFolder()
        try FileManager.default.createDirectory(atPath: "\(folder)/modules", withIntermediateDirectories: false)
        try copyFile(contextModule.build(), to: "\(folder)/modules/context.so")
        for (name, subject) in [("server", "/CN=localhost"), ("client", "/O=Shop/CN=ada")] {
            let made = try await Program.run([
                "openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
                "-days",
                "2", "-subj", subject, "-keyout", "\(folder)/\(name)-key.pem", "-out", "\(folder)/\(name).pem",
            ])
            #expect(made.status == 0, "\(made.output)")
        }
        let program = try Program([
            "serve", "--plugins", "\(folder)/modules", "--listen", "127.0.0.1:0", "--certificate",
            "\(folder)/server.pem", "--key", "\(folder)/server-key.pem", "--client-certificates",
            "\(folder)/client.pem",
        ])
        let port = try #require(await program.port(), "\(program.errorText)")
        #expect(
            await becomesTrue {
                // One connection for two calls.
                let url = "https://127.0.0.1:\(port)/call/Context/read"
                let answer = try await Program.run([
                    "curl", "-sk", "--cert", "\(folder)/client.pem", "--key", "\(folder)/client-key.pem", "-X", "POST",
                    url, url,
                ])
                return answer.output == "\"  CN=ada,O=Shop\"\"  CN=ada,O=Shop\""
            })
        program.send(SIGTERM)
        #expect(await program.end() == 0)
    }

    @Test func `a route answers its method only, and others of its path are named`() async throws {
        let gateway = try await TestGateway([contextModule.build()])
        func ask(_ method: String, _ path: String) async throws -> TestGateway.Answer {
            try await gateway.ask(method, path)
        }
        #expect(try await ask("GET", "/things/1").text == "\"get\"")
        #expect(try await ask("HEAD", "/things/1").status == 200)
        #expect(try await ask("PUT", "/things/1").text == "\"put\"")
        #expect(try await ask("DELETE", "/things/1").text == "\"delete\"")
        for method in ["POST", "PATCH", "OPTIONS"] {
            let answer = try await ask(method, "/things/1")
            #expect(answer.status == 405, "\(method)")
            #expect(answer.code == "methodNotAllowed")
            #expect(answer.header("Allow") == "GET, HEAD, PUT, DELETE")
        }
        // A route without a method accepts GET, HEAD and POST.
        #expect(try await ask("PUT", "/context").header("Allow") == "GET, HEAD, POST")
        #expect(try await ask("GET", "/nothing").status == 404)
        let paths = try await gateway.get("/openapi.json").json["paths"]
        #expect(paths?["/things/{id}"]?.map?.keys.sorted() == ["delete", "get", "put"])
        #expect(paths?["/things/{id}"]?["put"]?["requestBody"] == nil)
        #expect(paths?["/context"]?.map?.keys.sorted() == ["get", "post"])
        try await gateway.end()
    }
}

/// A module that returns what it can read about a call.
private let contextModule: CModule = {
    var module = CModule(name: "Context")
    module.code = """
        #include "plugin_abi/call_context.h"
        static void receive(void *data, const plugin_call_context *context) {
            snprintf(data, 1000, "%.*s %.*s %.*s", (int)context->trace_parent.count, context->trace_parent.bytes,
                     (int)context->trace_state.count, context->trace_state.bytes, (int)context->caller.count,
                     context->caller.bytes);
        }
        """
    let remote = "\"remote\": true, "
    let methods = ["get", "put", "delete"]
    module.targets = [
        .init(
            name: "Context",
            actions: [
                .init(
                    name: "read", manifest: remote,
                    body: """
                        char found[1000] = "none";
                        const plugin_call_contexts *contexts = plugin_call_contexts_of(host);
                        if (contexts) contexts->read(host, call->token, receive, found);
                        reply(call, found);
                        """)
            ]
                + methods.map { name in
                    .init(
                        name: name, manifest: remote, parameters: ["id": "string"],
                        body: "reply(call, \"\(name)\");")
                })
    ]
    module.moreManifest = """
        "routes": [
            \(methods.map { "{\"pattern\": \"https://*/things/:id\", \"method\": \"\($0.uppercased())\", \"action\": \"Context/\($0)\"}," }.joined())
            {"pattern": "https://*/context", "action": "Context/read"}
        ],
        """
    return module
}()
