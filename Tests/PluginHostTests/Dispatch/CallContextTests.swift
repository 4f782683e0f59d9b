import PluginABI
import PluginHost
import Synchronization
import Testing

@testable import TestSupport

/// The call context: the trace that a call is part of, and the name of whoever it is made for.
@Suite struct CallContextTests {
    private static let parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    private let context = CallContext(
        trace: TraceContext(traceparent: parent, tracestate: "vendor=1"), caller: "ada")

    /// Replies with the context that it reads through the extension.
    private static let read = """
        static void note_context(void *data, const plugin_call_context *context) {
            char *line = data;
            snprintf(line, 200, "%.*s %.*s %.*s %02x%02x %02x%02x %u %u", (int)context->caller.count,
                     context->caller.bytes ? context->caller.bytes : "", (int)context->trace_parent.count,
                     context->trace_parent.bytes ? context->trace_parent.bytes : "", (int)context->trace_state.count,
                     context->trace_state.bytes ? context->trace_state.bytes : "", context->trace_id[0],
                     context->trace_id[15], context->span_id[0], context->span_id[7], context->trace_flags, context->size);
        }
        static int32_t read_context(plugin_token token, char *line) {
            strcpy(line, "none");
            return plugin_call_contexts_of(host)->read(host, token, note_context, line);
        }
        """
    private static let known =
        "ada 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01 vendor=1 0a9c b731 1 80"

    /// Returns a module that reads its context, and calls other modules in every way.
    private static func module(_ name: String, other: String) -> CModule {
        CModule(
            name: name,
            moreManifest: """
                "routes": [{"pattern": "app://\(name)/1", "action": "\(name)/read"}],
                "services": [{"name": "\(name)Service", "version": "1.0.0", "target": "\(name)"}],
                """,
            code: Self.read + """
                static plugin_bound_action bound;
                static char heard[200];
                static void *read_later(void *data) {
                    char line[200];
                    read_context((plugin_token)data, line);
                    reply_value((plugin_token)data, plugin_value_text(line));
                    return NULL;
                }
                static void call_back(void *data, const plugin_call *call, const plugin_value *arguments, uint32_t count) {
                    (void)data, (void)arguments, (void)count;
                    char line[200];
                    read_context(call->token, line);
                    reply(call, line);
                }
                """,
            events: [("context.noted", "", "read_context(call->token, heard);")],
            targets: [
                .init(
                    name: name,
                    actions: [
                        .init(
                            name: "read", body: "char line[200]; read_context(call->token, line); reply(call, line);"),
                        .init(name: "here", body: "char line[200]; read_context(0, line); reply(call, line);"),
                        .init(
                            name: "counted",
                            body: "char line[200]; reply_int(call->token, read_context(call->token, line));"),
                        .init(
                            name: "spy", parameters: ["token": "int"],
                            body: """
                                char line[200];
                                read_context((plugin_token)arguments[0].as.integer, line);
                                reply(call, line);
                                """),
                        .init(name: "heard", body: "reply(call, heard);"),
                        .init(
                            name: "later", manifest: "\"async\": true,",
                            body: "start(read_later, (void *)call->token);"),
                        .init(
                            name: "make",
                            body: """
                                plugin_object thing = host->object_create(host, text("Thing"), NULL, NULL);
                                reply_value(call->token, plugin_value_object(thing));
                                host->object_release(host, thing);
                                """),
                        .init(
                            name: "callback",
                            body: """
                                plugin_object object = host->callback_create(host, call_back, NULL, NULL, 0);
                                reply_value(call->token, plugin_value_object(object));
                                host->object_release(host, object);
                                """),
                        .init(
                            name: "ask", parameters: ["target": "string", "action": "string"],
                            body: """
                                plugin_request request = plugin_request_action(
                                    plugin_string_of(&arguments[0]), plugin_string_of(&arguments[1]), NULL, 0);
                                host->perform(host, 0, &request, pass_on, (void *)call->token);
                                """),
                        .init(
                            name: "askLater", manifest: "\"async\": true,", parameters: ["target": "string"],
                            body: """
                                plugin_request request =
                                    plugin_request_action(plugin_string_of(&arguments[0]), text("later"), NULL, 0);
                                host->call(host, call->token, &request, pass_on, (void *)call->token);
                                """),
                        .init(
                            name: "open", parameters: ["url": "string"],
                            body: """
                                plugin_request request = plugin_request_action(
                                    plugin_string_of(&arguments[0]), (plugin_string){NULL, 0}, NULL, 0);
                                request.address = PLUGIN_ADDRESS_URL;
                                host->perform(host, 0, &request, pass_on, (void *)call->token);
                                """),
                        .init(
                            name: "serve", parameters: ["name": "string"],
                            body: """
                                plugin_request request =
                                    plugin_request_action(plugin_string_of(&arguments[0]), text("read"), NULL, 0);
                                request.address = PLUGIN_ADDRESS_SERVICE;
                                host->perform(host, 0, &request, pass_on, (void *)call->token);
                                """),
                        .init(
                            name: "bound",
                            body: """
                                const plugin_bound *table = plugin_bound_of(host);
                                if (!bound) bound = table->bind(host, text("\(other)"), text("counted"));
                                plugin_value result;
                                if (table->perform(host, bound, NULL, 0, &result, pass_on, (void *)call->token))
                                    host->resolve(host, call->token, &result);
                                """),
                        .init(
                            name: "touch", parameters: ["object": "object", "action": "string"],
                            body: """
                                plugin_request request = plugin_request_object(
                                    arguments[0].as.object, plugin_string_of(&arguments[1]), NULL, 0);
                                host->perform(host, 0, &request, pass_on, (void *)call->token);
                                """),
                        .init(
                            name: "post",
                            body: """
                                plugin_request request = plugin_request_action(
                                    text("context.noted"), (plugin_string){NULL, 0}, NULL, 0);
                                request.address = PLUGIN_ADDRESS_EVENT;
                                host->perform(host, 0, &request, pass_on, (void *)call->token);
                                """),
                        .init(
                            name: "canOpen", parameters: ["url": "string"],
                            body: """
                                plugin_request request = plugin_request_action(
                                    plugin_string_of(&arguments[0]), (plugin_string){NULL, 0}, NULL, 0);
                                request.address = PLUGIN_ADDRESS_URL;
                                request.flags = PLUGIN_REQUEST_REMOTE;
                                reply_int(call->token, plugin_routes_of(host)->can_open(host, call->token, &request));
                                """),
                    ])
            ],
            types: [
                (
                    "Thing",
                    [.init(name: "touch", body: "char line[200]; read_context(call->token, line); reply(call, line);")]
                )
            ])
    }

    /// Returns the sets of modules to isolate. The thread sanitizer of a worker does not know the threads of a module.
    private static func settings(_ all: [Set<String>]) -> [Set<String>] {
        sanitizer == "thread" ? all.filter(\.isEmpty) : all
    }

    private func host(isolating names: Set<String>) throws -> TestHost {
        try TestHost([
            Self.module("One", other: "Two").build(), Self.module("Two", other: "One").build(),
        ]) { configuration in
            configuration.isolation.rules = names.map { IsolationRule($0) }
        }
    }

    @Test(arguments: settings([[], ["One"], ["Two"], ["One", "Two"]]))
    func `Modules read the context at any depth and by any address`(isolated: Set<String>) async throws {
        let test = try host(isolating: isolated)
        let host = test.host
        let values: [Value] = try await host.withCallContext(context) { context in
            let thing = try context.perform("Two", "make")
            let callback = try context.perform("Two", "callback")
            return [
                try context.perform("One", "read"),
                try context.perform("One", "here"),
                try context.perform("One", "ask", ["Two", "read"]),
                try context.perform("One", "ask", ["Two", "here"]),
                try context.perform("One", "open", ["app://Two/1"]),
                try context.perform("One", "serve", ["TwoService"]),
                try context.perform("One", "touch", ["object": thing, "action": "touch"]),
                try context.perform("One", "touch", ["object": callback, "action": "call"]),
                try await context.call("One", "later"),
                try await context.call("One", "askLater", ["Two"]),
                try await context.open("app://Two/1"),
                try context.service("TwoService").perform("read", in: context),
            ]
        }
        #expect(values.allSatisfy { $0 == .string(Self.known) }, "\(values)")
        try host.withCallContext(context) { context in
            #expect(try context.perform("One", "bound") == 1)
            _ = try context.perform("One", "post")
            #expect(try context.perform("Two", "heard") == .string(Self.known))
            _ = try context.post("context.noted")
            let counted: Value = try host.bind("One", "counted").perform(in: context)
            #expect(counted == 1)
        }
        #expect(try host.perform("One", "bound") == 0)
        #expect(try host.perform("One", "read") == "none")
        #expect(try host.perform("One", "ask", ["Two", "read"]) == "none")
        _ = try await host.post("context.noted")
        #expect(try host.perform("Two", "heard") == "none")
    }

    @Test func `Only the innermost context counts, and it ends with its scope`() throws {
        let test = try host(isolating: [])
        let other = CallContext(caller: "grace")
        var kept: HostContext?
        try test.host.withCallContext(context) { outer in
            #expect(outer.caller == "ada" && outer.trace?.traceparent == Self.parent && outer.callContext == context)
            try test.host.withCallContext(other) { inner in
                #expect(inner.callContext == other)
                let heard: Value = try inner.perform("One", "ask", ["Two", "read"])
                #expect(heard == "grace   0000 0000 0 80")
                kept = inner
            }
            #expect(try outer.perform("One", "read") == .string(Self.known))
        }
        let ended = try #require(kept)
        #expect(ended.callContext.isEmpty && ended.trace == nil && ended.caller == nil)
        #expect(try ended.perform("One", "read") == "none")
    }

    @Test func `An action that continues after the program's call is over no longer has the context`() async throws {
        let test = try TestHost()
        let gate = AsyncStream<Void>.makeStream()
        let begun = AsyncStream<Void>.makeStream()
        let seen = Mutex<[String?]>([])
        try test.host.register(
            Manifest("Slow", version: "1.0.0") {
                Target("Slow") {
                    Action("run", .context()) { (context) async in
                        seen.withLock { $0.append(context.caller) }
                        begun.continuation.yield()
                        // In a task of its own, which is not cancelled with the call.
                        await Task { for await _ in gate.stream { break } }.value
                        seen.withLock { $0.append(context.caller) }
                        gate.continuation.finish()
                        begun.continuation.finish()
                    }
                }
            })
        let task = Task {
            try await test.host.withCallContext(context) { try await $0.call("Slow", "run") }
        }
        for await _ in begun.stream { break }
        task.cancel()
        _ = try? await task.value
        gate.continuation.yield()
        for await _ in begun.stream {}
        #expect(seen.withLock { $0 } == ["ada", nil])
        test.host.shutdown()
    }

    @Test func `The guard, interceptors and modules' interceptors read the context`() async throws {
        let test = try host(isolating: [])
        let host = test.host
        let seen = Mutex<[CallContext]>([])
        try host.register(
            Manifest("Open", version: "1.0.0") {
                Target("Open") { Action("door", .context()) { $0.caller ?? "nobody" }.remote(requires: "login") }
                Intercept("watch") { call, next in
                    seen.withLock { $0.append(call.callContext) }
                    return try next(call)
                }
            })
        host.onRemoteCall { call in call.callContext.caller == "ada" ? .pass : .refuse("Who is there?") }
        try host.updateInterceptors([.init("Open", "watch", for: .target("Open"))])
        host.intercept(.target("Open"), priority: 1) { call, next in
            seen.withLock { $0.append(call.callContext) }
            return try next(call)
        }
        let answers: (Value, Bool, Value) = try await host.withCallContext(context) { context in
            (
                try await context.open("app://Open/door", origin: .remote),
                context.canOpen("app://Open/door", origin: .remote),
                try context.perform("One", "canOpen", ["app://Open/door"])
            )
        }
        #expect(answers.0 == "ada" && answers.1 && answers.2 == 1)
        #expect(seen.withLock { $0 } == [context, context])
        #expect(!host.canOpen("app://Open/door", origin: .remote))
        #expect(throws: PluginError.self) { try host.open("app://Open/door", origin: .remote) }
        #expect(try host.perform("One", "canOpen", ["app://Open/door"]) == 0)
    }

    @Test func `The rest of a call has its context on another thread of an interceptor, too`() throws {
        let module = CModule(
            name: "Away", moreManifest: "\"interceptors\": [{\"name\": \"away\"}],",
            code: """
                static plugin_object rest;
                static void *go_on(void *token) {
                    plugin_request request = plugin_request_object(rest, PLUGIN_STRING(PLUGIN_INTERCEPTED_CONTINUE), NULL, 0);
                    host->perform(host, 0, &request, pass_on, token);
                    return NULL;
                }
                static void away(void *data, const plugin_call *call, const plugin_value *arguments, uint32_t count) {
                    (void)data, (void)count;
                    rest = arguments[1].as.object;
                    pthread_t thread;
                    pthread_create(&thread, NULL, go_on, (void *)call->token);
                    pthread_join(thread, NULL);
                }
                """, moreFunctions: "{TEXT(\"~away\"), away, NULL}")
        let test = try TestHost([module.build()])
        try test.host.register(
            Manifest("Door", version: "1.0.0") {
                Target("Door") { Action("ring", .context()) { $0.caller ?? "nobody" } }
            })
        try test.host.updateInterceptors([.init("Away", "away", for: .target("Door"))])
        let caller = try test.host.withCallContext(context) { try $0.perform("Door", "ring") }
        #expect(caller == "ada")
    }

    @Test(arguments: settings([[], ["One"], ["Two"]]))
    func `An interceptor makes a span around each call from module to module`(isolated: Set<String>) async throws {
        let test = try host(isolating: isolated)
        let host = test.host
        let spans = Mutex<[(name: String, parent: TraceContext.SpanID, own: TraceContext.SpanID)]>([])
        host.intercept(.all) { call, next in
            guard let trace = call.callContext.trace else { return try next(call) }
            let own = TraceContext.SpanID.random()
            spans.withLock { $0.append(("\(call.target)/\(call.action)", trace.spanID, own)) }
            var call = call
            call.callContext.trace = trace.within(own)
            return try next(call)
        }
        let read = try await host.withCallContext(context) { context in
            try await context.call("One", "ask", ["Two", "read"]).string ?? ""
        }
        let made = spans.withLock { $0 }
        #expect(made.map(\.name) == ["One/ask", "Two/read"])
        #expect(made[0].parent == context.trace?.spanID && made[1].parent == made[0].own)
        #expect(read.contains("ada 00-0af7651916cd43dd8448eb211c80319c-\(made[1].own)-01 vendor=1"), "\(read)")
        spans.withLock { $0 = [] }
        let later = try await host.withCallContext(context) {
            try await $0.call("One", "askLater", ["Two"]).string ?? ""
        }
        let async = spans.withLock { $0 }
        #expect(async.map(\.name) == ["One/askLater", "Two/later"] && async[1].parent == async[0].own)
        #expect(later.contains(async[1].own.description), "\(later)")
    }

    @Test(arguments: [[], ["One"]] as [Set<String>])
    func `A module reads the contexts of its own calls only`(isolated: Set<String>) throws {
        let test = try host(isolating: isolated)
        try test.host.withCallContext(context) { context in
            let heard = try context.perform("One", "spy", [.int(Int(bitPattern: UInt(context.call)))])
            #expect(heard == "none")
        }
    }

    @Test func `A deep chain of calls with a context ends with the same error as one without`() throws {
        let test = try TestHost()
        try test.host.register(
            Manifest("Deep", version: "1.0.0") {
                Target("Deep") {
                    Action("down", .context(), .required("n", Int.self)) { (context, n) throws -> Value in
                        if n == 0 { return .string(context.caller ?? "nobody") }
                        return try context.perform("Deep", "down", [.int(n - 1)])
                    }
                }
            })
        for make in [false, true] {
            func down(_ n: Int) throws -> Value {
                guard make else { return try test.host.perform("Deep", "down", [.int(n)]) }
                return try test.host.withCallContext(context) { try $0.perform("Deep", "down", [.int(n)]) }
            }
            #expect(try down(127) == (make ? "ada" : "nobody"))
            #expect { try down(128) } throws: { ($0 as? PluginError)?.code == .recursionLimit }
        }
    }

    @Test func `A caller that is empty or too long is refused`() throws {
        let test = try TestHost()
        for name in ["", String(repeating: "a", count: 1025)] {
            #expect { try test.host.withCallContext(CallContext(caller: name)) { _ in } } throws: {
                ($0 as? PluginError)?.code == .invalidValue
            }
        }
        try test.host.withCallContext(CallContext(caller: String(repeating: "a", count: 1024))) {
            #expect($0.caller?.count == 1024)
        }
    }
}
