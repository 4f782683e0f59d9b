import Foundation
import PluginABI
import PluginHost
import RemoteModules
import Synchronization
import Testing

/// The outcomes of calls whose answer does not come from a gateway.
@Suite struct BalancerTests {
    private static let html = FakeBalancer.whole(
        "502 Bad Gateway", "text/html", "<html><body><h1>502 Bad\u{7} Gateway</h1>\n%s %n</body></html>")

    /// Calls an action of a balancer, and returns the error and the number of times that the call was sent.
    private func call(
        _ action: String, _ answer: @escaping @Sendable (Int) -> FakeBalancer.Answer, timeout: Duration? = nil,
        configure: (inout RemoteConfiguration) -> Void = { _ in }
    ) async throws -> (error: PluginError?, sent: Int) {
        let balancer = try FakeBalancer { _, number in answer(number) }
        let mount = try TestMount(balancer.url) { configure(&$0) }
        #expect(await mount.isServed())
        let error = await mount.error(action, timeout: timeout)
        let sent = balancer.calls.count
        #expect(mount.remote.status.sent == sent)
        #expect(await becomesTrue { mount.remote.status.callsInFlight == 0 })
        try await mount.end()
        balancer.end()
        return (error, sent)
    }

    @Test(arguments: [
        ("502", FakeBalancer.Answer.text(html)),
        ("503", .text(FakeBalancer.whole("503 Service Unavailable", "text/plain", "no server"))),
        ("200", .text(FakeBalancer.ok("<p>Welcome</p>", type: "text/html"))),
        ("200", .text(FakeBalancer.ok("{\"half\": "))),
        (
            "without a length",
            .last("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n\r\n12")
        ),
        ("204", .text("HTTP/1.1 204 No Content\r\n\r\n")),
        ("302", .text("HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n")),
        ("lost", .last("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{\"a\":")),
        (
            "lost",
            .last(
                "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n{\"a\":\r\n"
            )
        ),
        ("lost", .last("")), ("lost", .last("no HTTP at all\r\n\r\n")),
        ("events", .text(FakeBalancer.ok("event: x\ndata: 1\n\n", type: "text/event-stream"))),
        ("503", .text(FakeBalancer.problem("503 Service Unavailable", "not a code"))),
    ])
    func `an answer that is not valid is an error that describes it, and only idempotent calls are sent again`(
        expected: String, answer: FakeBalancer.Answer
    ) async throws {
        let (once, sentOnce) = try await call("once", { _ in answer })
        #expect(once?.code == .moduleUnavailable)
        #expect(once?.message.contains(expected) == true, "\(once?.message ?? "")")
        #expect(once?.message.hasSuffix("Whether the call took effect is unknown.") == true)
        #expect(sentOnce == 1)

        let (again, sentAgain) = try await call("again", { _ in answer })
        #expect(again?.code == .moduleUnavailable)
        #expect(again?.message.contains("It was sent twice.") == true, "\(again?.message ?? "")")
        #expect(sentAgain == 2)

        let (none, sent) = try await call("again", { $0 == 1 ? answer : .text(FakeBalancer.ok("1")) })
        #expect(none == nil)
        #expect(sent == 2)
    }

    @Test func `text of a balancer is shown in one line, without tags and controls`() async throws {
        let message = try await call("once", { _ in .text(Self.html) }).error?.message ?? ""
        #expect(message.contains("status 502 and the type text/html"))
        #expect(message.contains("“502 Bad Gateway %s %n”"), "\(message)")
        let long = try await call(
            "once",
            { _ in .text(FakeBalancer.whole("500 Oops", "text/plain", String(repeating: "ab ", count: 10_000))) })
        #expect((long.error?.message.utf8.count ?? 0) < 600)
    }

    @Test func `an error of a gateway is not repeated, unless it says that nothing has happened`() async throws {
        let busy = try await call("again", { _ in .text(FakeBalancer.problem("429 Busy", "moduleBusy")) })
        #expect(busy.error?.code == "moduleBusy" && busy.sent == 1)
        let starting = try await call(
            "once", { $0 == 1 ? .text(FakeBalancer.problem("503 Later", "hostStarting")) : .text(FakeBalancer.ok("1")) }
        )
        #expect(starting.error == nil && starting.sent == 2)
        let stopping = try await call("once", { _ in .text(FakeBalancer.problem("503 Later", "hostStopping")) })
        #expect(stopping.error?.code == "hostStopping" && stopping.sent == 1)
        #expect(stopping.error?.message.contains("is unknown") == true)
        let gone = try await call("once", { _ in .text(FakeBalancer.problem("404 Not Found", "noRoute")) })
        #expect(gone.error?.code == .moduleUnavailable && gone.sent == 2)
        #expect(gone.error?.message.contains("does not offer the action") == true)
        let foreign = try await call(
            "again",
            { _ in
                .text(
                    FakeBalancer.whole(
                        "422 No", "application/problem+json",
                        "{\"code\": \"hostStopping\", \"detail\": \"\\u001b[2J\", \"module\": \"M\"}"))
            })
        #expect(foreign.error == PluginError("hostStopping", " [2J", source: "M"))
        #expect(foreign.sent == 1)
    }

    @Test func `a token that one of the hosts does not accept has its own error, and is tried once more`()
        async throws
    {
        let refusal = FakeBalancer.problem("401 Unauthorized", "unauthorized")
        let (error, sent) = try await call("once", { _ in .text(refusal) })
        #expect(error?.code == "unauthorized")
        #expect(error?.message.contains("token") == true)
        #expect(sent == 2)
        // The next host accepts the call, which has had no effect before.
        let (none, both) = try await call("once", { $0 == 1 ? .text(refusal) : .text(FakeBalancer.ok("1")) })
        #expect(none == nil && both == 2)
    }

    @Test func `silence ends at the deadline, of the call or of the mount`() async throws {
        let (once, sent) = try await call("once", { _ in .silence }, timeout: .milliseconds(300))
        #expect(once?.code == .deadlineExceeded)
        #expect(sent == 1)
        let start = ContinuousClock.now
        let (again, _) = try await call("again", { _ in .silence }, configure: { $0.callTimeout = .milliseconds(300) })
        #expect(again?.code == .deadlineExceeded)
        #expect(again?.message.contains("unknown") == false)
        #expect(.now - start < .seconds(60))
    }

    @Test func `a body without an end is cut off`() async throws {
        let head = "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Type: "
        let chunk = "\r\nTransfer-Encoding: chunked\r\n\r\n7fffffff\r\n\""
        let json = try await call(
            "once", { _ in .endless(head + "application/json" + chunk) }, configure: { $0.answerLimit = 1 << 20 })
        #expect(json.error?.code == .invalidResult)
        #expect(json.error?.message.contains("1048576 bytes") == true)
        let html = try await call("once", { _ in .endless(head + "text/html\r\n\r\n") })
        #expect(html.error?.code == .moduleUnavailable)
        let lines = try await call("items", { _ in .endless(head + "application/jsonl" + chunk) })
        #expect(lines.error == nil)
    }

    @Test func `a host that does not listen is tried twice, since nothing was sent`() async throws {
        let balancer = try FakeBalancer { _, _ in .text(FakeBalancer.ok("1")) }
        let mount = try TestMount(balancer.url)
        #expect(await mount.isServed())
        balancer.end()
        let error = await mount.error("once")
        #expect(error?.code == .moduleUnavailable)
        #expect(error?.message.contains("cannot be reached") == true, "\(error?.message ?? "")")
        #expect(error?.message.contains("unknown") == false)
        #expect(mount.remote.status.retried == 1)
        try await mount.end()
    }

    @Test func `no more calls are in flight than the limit, also if callers are cancelled`() async throws {
        let balancer = try FakeBalancer { _, _ in .silence }
        let mount = try TestMount(balancer.url) { $0.callLimit = 2 }
        #expect(await mount.isServed())
        let calls = (0..<2).map { _ in Task { try await mount.host.call("B", "later", timeout: .seconds(120)) } }
        #expect(await becomesTrue { balancer.calls.count == 2 })
        #expect(await mount.error("once")?.code == .overloaded)
        for call in calls { call.cancel() }
        for call in calls {
            await #expect(throws: PluginError.self) { try await call.value }
        }
        // The connections are closed.
        #expect(await becomesTrue { mount.remote.status.callsInFlight == 0 })
        try await mount.end()
        balancer.end()
    }

    @Test func `the breaker opens after failures in a row, and refuses calls`() async throws {
        let lines = Lines()
        let balancer = try FakeBalancer { _, number in
            number == 1 ? .text(FakeBalancer.ok("1")) : .text(Self.html)
        }
        let mount = try TestMount(balancer.url, lines: lines) {
            ($0.breaker.failures, $0.breaker.pause) = (3, .seconds(6000))
        }
        #expect(await mount.isServed())
        #expect(await mount.error("once") == nil)
        for _ in 0..<3 { #expect(await mount.error("once")?.message.contains("status 502") == true) }
        #expect(mount.remote.status.breaker == .open)
        #expect(mount.remote.status.lastFailure.contains("502"))
        let refused = await mount.error("once")
        #expect(refused?.code == .moduleUnavailable)
        #expect(refused?.message.contains("no more are sent") == true)
        #expect(balancer.calls.count == 4)
        #expect(lines.all.contains { $0.message.contains("no longer sent") })
        try await mount.end()
        balancer.end()
    }

    @Test func `after a pause, the breaker lets a probe pass, and closes if that is answered`() async throws {
        let lines = Lines()
        let isBad = Flag()
        isBad.set(true)
        let balancer = try FakeBalancer { _, _ in isBad.isSet ? .text(Self.html) : .text(FakeBalancer.ok("1")) }
        let mount = try TestMount(balancer.url, lines: lines) {
            ($0.breaker.failures, $0.breaker.pause) = (2, .milliseconds(10))
        }
        #expect(await mount.isServed())
        for _ in 0..<2 { #expect(await mount.error("once") != nil) }
        #expect(mount.remote.status.breaker == .open)
        // The probe fails, so the breaker opens again.
        #expect(await becomesTrue { await mount.error("once")?.message.contains("status 502") == true })
        #expect(mount.remote.status.breaker == .open)
        isBad.set(false)
        #expect(await becomesTrue { await mount.error("once") == nil })
        #expect(mount.remote.status.breaker == .closed)
        #expect(await mount.error("once") == nil)
        #expect(lines.all.contains { $0.message.hasSuffix("again.") })
        try await mount.end()
        balancer.end()
    }

    @Test func `asynchronous calls that get no answer open the breaker, and those that are cancelled do not`()
        async throws
    {
        let balancer = try FakeBalancer { _, _ in .silence }
        let mount = try TestMount(balancer.url) {
            ($0.breaker.failures, $0.callTimeout) = (2, .milliseconds(50))
        }
        #expect(await mount.isServed())
        for number in 1...3 {
            let call = Task { try await mount.host.call("B", "later", timeout: .seconds(120)) }
            #expect(await becomesTrue { balancer.calls.count == number })
            call.cancel()
            await #expect(throws: PluginError.self) { try await call.value }
        }
        #expect(mount.remote.status.breaker == .closed)
        // A call whose time is up before it is sent says nothing about the other host.
        #expect(
            await becomesTrue {
                let late = await #expect(throws: PluginError.self) {
                    try await mount.host.call("B", "later", timeout: .milliseconds(50))
                }
                return late?.code == .moduleUnavailable && mount.remote.status.breaker == .open
            })
        try await mount.end()
        balancer.end()
    }

    @Test func `callers with little time do not open the breaker for others`() async throws {
        let balancer = try FakeBalancer { _, number in number <= 5 ? .silence : .text(FakeBalancer.ok("1")) }
        let mount = try TestMount(balancer.url) { $0.breaker.failures = 2 }
        #expect(await mount.isServed())
        for _ in 0..<5 { #expect(await mount.error("once", timeout: .milliseconds(100))?.code == .deadlineExceeded) }
        #expect(mount.remote.status.breaker == .closed)
        #expect(await becomesTrue { balancer.calls.count == 5 })
        #expect(await mount.error("once") == nil)
        try await mount.end()
        balancer.end()
    }

    @Test func `a completion can wait for another call`() async throws {
        let balancer = try FakeBalancer { _, _ in .text(FakeBalancer.ok("1")) }
        var module = CModule(name: "Both")
        // The second call is made on the thread that delivers the outcome of the first.
        module.code = """
            static void completed(void *token, const plugin_value *value, const plugin_error *error) {
                (void)value, (void)error;
                plugin_request request = ask("B", "once");
                host->perform(host, (plugin_token)token, &request, pass_on, token);
            }
            """
        module.manifest = """
            {"name": "Both", "version": "1.0.0",
             "targets": [{"name": "Both", "actions": [{"name": "both", "async": true}]}]}
            """
        module.targets = [
            .init(
                name: "Both",
                actions: [
                    .init(
                        name: "both",
                        body: """
                            plugin_request request = ask("B", "later");
                            host->call(host, call->token, &request, completed, (void *)call->token);
                            """)
                ])
        ]
        let gateway = try await TestGateway([module.build()])
        let second = try TestMount(balancer.url, in: gateway.gateway.host)
        #expect(await second.isServed())
        #expect(try await gateway.gateway.host.call("Both", "both") == 1)
        try await second.end()
        try await gateway.end()
        balancer.end()
    }

    @Test func `calls that a host takes along when it vanishes count as one failure`() async throws {
        let arrived = DispatchSemaphore(value: 0)
        let go = DispatchSemaphore(value: 0)
        let balancer = try FakeBalancer { _, number in
            guard number <= 8 else { return .text(FakeBalancer.ok("1")) }
            arrived.signal()
            go.wait()
            return .last("")
        }
        let mount = try TestMount(balancer.url) { $0.breaker.failures = 3 }
        #expect(await mount.isServed())
        let calls = (0..<8).map { _ in Task { try await mount.host.call("B", "later", timeout: .seconds(120)) } }
        try await onThread { for _ in 0..<8 { arrived.wait() } }
        for _ in 0..<8 { go.signal() }
        for call in calls {
            await #expect(throws: PluginError.self) { try await call.value }
        }
        #expect(mount.remote.status.unanswered == 8)
        #expect(mount.remote.status.breaker == .closed)
        #expect(await mount.error("once") == nil)
        try await mount.end()
        balancer.end()
    }

    @Test func `the breaker opens at a share of the last calls`() async throws {
        let balancer = try FakeBalancer { _, number in
            number % 2 == 0 ? .text(Self.html) : .text(FakeBalancer.ok("1"))
        }
        let mount = try TestMount(balancer.url) {
            ($0.breaker.window, $0.breaker.pause) = (10, .seconds(600))
        }
        #expect(await mount.isServed())
        for _ in 0..<9 { _ = await mount.error("once") }
        #expect(mount.remote.status.breaker == .closed)
        _ = await mount.error("once")
        #expect(mount.remote.status.breaker == .open)
        try await mount.end()
        balancer.end()
    }
}

/// A condition that a test changes.
private final class Flag: Sendable {
    private let value = Mutex(false)

    var isSet: Bool { value.withLock(\.self) }
    func set(_ isSet: Bool) { value.withLock { $0 = isSet } }
}
