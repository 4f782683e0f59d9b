import PluginABI
import Synchronization
import Testing

@testable import PluginHost
@testable import TestSupport

/// Closures of the program that receive events, by whichever path these take.
@Suite(.timeLimit(.minutes(30))) struct ProgramEventTests {
    @Test func `A name may contain a zero byte, and all of it counts`() throws {
        let host = try TestHost.withFixture().host
        let name = "zero\0" + String(repeating: "x", count: 5000)
        let running = Mutex<[String]>([])
        let subscription = host.on(name) { _ in
            running.withLock { $0 += runningCalls().compactMap { CallRecord.name(of: $0.token) } }
        }
        #expect(try host.post(name).delivered == 1)
        #expect(try host.post("zero").delivered == 0)
        #expect(running.withLock { $0 }.contains("!" + name))
        subscription.cancel()
    }

    @Test func `A subscription of the program lasts until it is cancelled`() async throws {
        let test = try TestHost.withFixture()
        let got = Mutex<[[String: Value]]>([])
        let subscription = test.host.on("fixture.sync") { parameters in got.withLock { $0.append(parameters) } }
        #expect(try await test.host.post("fixture.sync", ["item": "tea", "count": 2]).delivered == 2)
        #expect(got.withLock { $0 } == [["item": "tea", "count": 2]])
        subscription.cancel()
        #expect(try await test.host.post("fixture.sync").delivered == 1)
    }

    @Test func `A subscription that is dropped ends`() async throws {
        let test = try TestHost.withFixture()
        _ = test.host.on("mine") { _ in }
        #expect(try await test.host.post("mine").delivered == 0)
    }

    @Test func `An asynchronous handler of the program is awaited, and its error reported`() async throws {
        let test = try TestHost.withFixture()
        let subscription = test.host.on("mine") { _ in
            try await Task.sleep(for: .milliseconds(20))
            throw PluginError("tired", "Not now.")
        }
        let outcome = try await test.host.post("mine")
        #expect(outcome.failures == [PluginError("tired", "Not now.")])
        subscription.cancel()
    }

    // With an asynchronous handler beside them, an event takes the general path.

    @Test(arguments: [false, true])
    func `Handlers of the program run in their order after the modules, and each failure is reported`(
        besideAsynchronous: Bool
    ) throws {
        let test = try TestHost.withFixture()
        let host = test.host
        struct Broken: Error {}
        let heard = Mutex<[String]>([])
        let subscriptions = [
            host.on("fixture.sync") { parameters in
                heard.withLock { $0.append("first \(parameters)") }
                throw PluginError("tired", "Not now.")
            },
            host.on("fixture.sync") { parameters in heard.withLock { $0.append("second \(parameters)") } },
            host.on("fixture.sync") { _ in throw Broken() },
            besideAsynchronous ? host.on("fixture.sync") { _ in await Task.yield() } : nil,
        ]
        let outcome = try host.post("fixture.sync", ["item": "tea"])
        #expect(outcome.delivered == (besideAsynchronous ? 5 : 4))
        #expect(outcome.failures.map(\.code) == ["tired", .actionFailed])
        #expect(heard.withLock { $0 } == ["first", "second"].map { "\($0) \(["item": Value.string("tea")])" })
        for subscription in subscriptions { subscription?.cancel() }
    }

    @Test(arguments: [false, true])
    func `A handler that an earlier one cancels does not get the event`(besideAsynchronous: Bool) throws {
        let test = try TestHost([])
        let host = test.host
        let later = Mutex<Subscription?>(nil)
        let heard = Mutex(0)
        let first = host.on("mine") { _ in later.withLock { $0.take() }?.cancel() }
        later.withLock { $0 = host.on("mine") { _ in heard.withLock { $0 += 1 } } }
        let other = besideAsynchronous ? host.on("mine") { _ in await Task.yield() } : nil
        #expect(try host.post("mine").delivered == (besideAsynchronous ? 2 : 1))
        #expect(heard.withLock { $0 } == 0)
        first.cancel()
        other?.cancel()
    }

    @Test(arguments: [false, true])
    func `A handler that is cancelled while it runs is not run again`(besideAsynchronous: Bool) throws {
        let test = try TestHost([])
        let host = test.host
        let later = Mutex<Subscription?>(nil)
        let heard = Mutex(0)
        // In the delivery that the second handler causes, the first one cancels it.
        let first = host.on("mine") { _ in
            if heard.withLock({ $0 }) > 0 { later.withLock { $0.take() }?.cancel() }
        }
        later.withLock {
            $0 = host.on("mine") { _ in
                heard.withLock { $0 += 1 }
                try host.post("mine")
            }
        }
        let other = besideAsynchronous ? host.on("mine") { _ in await Task.yield() } : nil
        try host.post("mine")
        #expect(heard.withLock { $0 } == 1)
        first.cancel()
        other?.cancel()
    }

    @Test(arguments: [false, true])
    func `Calls by a handler of the program are attributed to the event`(besideAsynchronous: Bool) throws {
        let test = try TestHost([])
        let host = test.host
        let seen = Mutex<[String]>([])
        try host.register(
            Manifest("Asked", version: "1.0.0") {
                Target("Asked") {
                    Action("who") {
                        var call = ThreadContext.current?.top
                        while let present = call {
                            seen.withLock { $0.append("\(present.depth) \(present.endpoint?.name ?? "")") }
                            call = CallRecord(token: present.parent)
                        }
                    }
                }
            })
        let subscription = host.on("mine") { [weak host] _ in try host?.perform("Asked", "who") }
        let other = besideAsynchronous ? host.on("mine") { _ in await Task.yield() } : nil
        #expect(try host.post("mine").failures.isEmpty)
        #expect(seen.withLock { $0 } == ["3 Asked/who", "2 !mine", "1 posting of an event"])
        subscription.cancel()
        other?.cancel()
    }

    private enum Failing: CaseIterable { case handlers, besideAsynchronous, modules }

    @Test(arguments: Failing.allCases)
    private func `A log that posts the event that failed ends soon`(_ failing: Failing) throws {
        let running = Mutex<PluginHost?>(nil)
        let test = try TestHost([]) { configuration in
            configuration.log = { _ in _ = try? running.withLock { $0 }?.post("log.line") }
        }
        let host = test.host
        running.withLock { $0 = host }
        defer { running.withLock { $0 = nil } }
        let calls = Mutex(0)
        @Sendable func fail() throws {
            calls.withLock { $0 += 1 }
            if calls.withLock({ $0 }) > 5000 { running.withLock { $0 = nil } }
            throw PluginError("full", "No space left.")
        }
        var subscriptions: [Subscription] = []
        switch failing {
        case .modules:
            for name in ["A", "B"] {
                try host.register(
                    Manifest(name, version: "1.0.0") { Subscribe { Action("log.line") { try fail() } } })
            }
        case .handlers, .besideAsynchronous:
            subscriptions = (0..<2).map { _ in host.on("log.line") { _ in try fail() } }
            if failing == .besideAsynchronous { subscriptions.append(host.on("log.line") { _ in await Task.yield() }) }
        }
        _ = try? host.post("log.line")
        #expect(calls.withLock { $0 } < 1000)
        for subscription in subscriptions { subscription.cancel() }
    }

    @Test(arguments: [false, true])
    func `Two encodings of one character are two names`(besideAsynchronous: Bool) throws {
        let test = try TestHost([])
        let host = test.host
        let heard = Mutex<[String]>([])
        let subscriptions = ["caf\u{E9}", "cafe\u{301}"].enumerated().map { number, name in
            host.on(name) { _ in heard.withLock { $0.append("\(number)") } }
        }
        let other = besideAsynchronous ? host.on("cafe\u{301}") { _ in await Task.yield() } : nil
        #expect(try host.post("cafe\u{301}").delivered == (besideAsynchronous ? 2 : 1))
        #expect(heard.withLock { $0 } == ["1"])
        #expect(try host.post("caf\u{E9}").delivered == 1)
        #expect(heard.withLock { $0 } == ["1", "0"])
        for subscription in subscriptions { subscription.cancel() }
        other?.cancel()
    }

    @Test func `An event may be named like the asynchronous handlers of another one`() async throws {
        let test = try TestHost([])
        let host = test.host
        let heard = Mutex<[String]>([])
        let subscriptions = [
            host.on("async mine") { _ in heard.withLock { $0.append("synchronous") } },
            host.on("mine") { _ in
                await Task.yield()
                heard.withLock { $0.append("asynchronous") }
            },
        ]
        #expect(try await host.post("mine").failures.isEmpty)
        #expect(try await host.post("async mine").failures.isEmpty)
        #expect(heard.withLock { $0 } == ["asynchronous", "synchronous"])
        for subscription in subscriptions { subscription.cancel() }
    }

    @Test(arguments: [false, true])
    func `An error without a code becomes actionFailed`(besideAsynchronous: Bool) throws {
        let test = try TestHost([])
        let host = test.host
        let subscription = host.on("mine") { _ in throw PluginError("", "Nothing.", source: "") }
        let other = besideAsynchronous ? host.on("mine") { _ in await Task.yield() } : nil
        #expect(try host.post("mine").failures == [PluginError(.actionFailed, "Nothing.")])
        subscription.cancel()
        other?.cancel()
    }

    @Test func `Threads that subscribe, post and cancel get their events exactly while they are subscribed`()
        async throws
    {
        let test = try TestHost([])
        let host = test.host
        let outcomes = try await onThreads(4) { number in
            try (0..<500).map { round -> [Int] in
                let event = "rang\(number).\(round % 7)"
                let heard = Mutex(0)
                let subscription = host.on(event) { _ in heard.withLock { $0 += 1 } }
                let during = try host.post(event).delivered
                subscription.cancel()
                let after = try host.post(event).delivered
                return [during, after, heard.withLock { $0 }]
            }
        }
        #expect(outcomes.joined().allSatisfy { $0 == [1, 0, 1] })
    }
}
