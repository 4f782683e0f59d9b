import Foundation
import PluginABI
import Synchronization
import Testing

@testable import PluginHost
@testable import TestSupport

/// What is counted and measured for calls.
@Suite(.timeLimit(.minutes(30))) struct StatisticsTests {
    private func statistics(_ host: PluginHost, _ action: String) -> ActionStatistics? {
        host.statistics.first { $0.action == action }
    }

    @Test func `An action that was never called has no statistics`() throws {
        let test = try TestHost.withFixture()
        #expect(statistics(test.host, "Echo/int") == nil)
        try test.host.perform("Echo", "int", [1])
        let echo = try #require(statistics(test.host, "Echo/int"))
        #expect(echo.module == "FixtureModule" && echo.calls == 1 && echo.errors == 0 && echo.measured == 1)
        #expect(echo.median! <= echo.maximum! && echo.percentile99! <= echo.maximum!)
    }

    @Test func `Every call of every thread is counted, also when the thread has ended`() async throws {
        let test = try TestHost.withFixture()
        let host = test.host
        let (echo, fails) = (host.bind("Echo", "int"), host.bind("Failing", "coded"))
        for _ in 0..<4 {
            _ = try await onThreads(8) { number in
                for n in 0..<500 {
                    let same: Int = try echo(n)
                    #expect(same == n)
                    try host.perform("Echo", "int", ["value": .int(n)])
                    if n % 10 == 0 { #expect(throws: PluginError.self) { try fails.perform() } }
                }
            }
        }
        let counted = try #require(statistics(host, "Echo/int"))
        #expect(counted.calls == 4 * 8 * 500 * 2 && counted.errors == 0)
        #expect(counted.measured >= counted.calls / 64)
        let failed = try #require(statistics(host, "Failing/coded"))
        #expect(failed.calls == 4 * 8 * 50 && failed.errors == failed.calls)
    }

    @Test func `Durations that two threads add at once are both counted, even if they are the first`() async throws {
        final class Place: Sendable {
            let durations = Durations()
            let arrived = Atomic(0)
        }
        let places = (0..<2_000).map { _ in Place() }
        _ = try await onThreads(2) { number in
            for place in places {
                place.arrived.add(1, ordering: .relaxed)
                while place.arrived.load(ordering: .relaxed) < 2 { sched_yield() }
                place.durations.add(Int64(number))
            }
        }
        #expect(places.allSatisfy { $0.durations.measured.total == 2 && $0.durations.measured.longest == 1 })
    }

    @Test func `Calls that were refused, cancelled or too late count as errors of the action, once each`()
        async throws
    {
        let test = try TestHost.withFixture()
        let host = test.host
        #expect(throws: PluginError.self) { try host.perform("Echo", "int") }
        #expect(throws: PluginError.self) { try host.perform("Echo", "int", ["one"]) }
        #expect(throws: PluginError.self) { try host.perform("Failing", "later") }
        let echo = try #require(statistics(host, "Echo/int"))
        #expect(echo.calls == 2 && echo.errors == 2 && echo.measured == 0 && echo.maximum == nil)

        await #expect(throws: PluginError.self) { try await host.call("Failing", "later") }
        let later = try #require(statistics(host, "Failing/later"))
        #expect(later.calls == 2 && later.errors == 2)

        await #expect(throws: PluginError.self) {
            try await host.call("Later", "untilCancelled", timeout: .milliseconds(500))
        }
        #expect(statistics(host, "Later/untilCancelled")?.errors == 1)
        #expect(try await host.call("Later", "atOnce") == 1)
        let atOnce = try #require(statistics(host, "Later/atOnce"))
        #expect(atOnce.calls == 1 && atOnce.errors == 0 && atOnce.measured == 1)
    }

    @Test func `Serial, shared and nested actions, services, events and hooks are counted like others`() async throws {
        let test = try TestHost.withFixture()
        let host = test.host
        try host.perform("Serial", "overlap", [0])
        #expect(try await host.call("Serial", "overlapLater", [0]) == 0)
        try host.perform("Shared", "number")
        #expect(try await host.post("fixture.sync").delivered == 1)
        #expect(statistics(host, "Serial/overlap")?.calls == 1)
        #expect(statistics(host, "Serial/overlapLater")?.calls == 1)
        #expect(statistics(host, "Shared/number")?.calls == 1)
        #expect(statistics(host, "!fixture.sync")?.calls == 1)
    }

    @Test func `An intercepted call counts once, and one that an interceptor refuses does not count`() throws {
        let test = try TestHost.withFixture()
        let interceptor = test.host.intercept(.target("Echo")) { call, next in
            if call.parameters["value"] == 0 { throw PluginError("tired", "Not today.") }
            return try next(call)
        }
        try test.host.perform("Echo", "int", [1])
        #expect(test.code("Echo", "int") != nil)
        #expect(throws: PluginError.self) { try test.host.perform("Echo", "int", [0]) }
        interceptor.remove()
        let echo = try #require(statistics(test.host, "Echo/int"))
        #expect(echo.calls == 2 && echo.errors == 1)
    }

    @Test func `Calls of earlier generations are counted`() throws {
        let test = try TestHost()
        try CModule().build(into: test.plugins, as: "Good.so")
        try test.start()
        for _ in 0..<3 { #expect(test.answer() == "yes") }
        try CModule(version: "1.1.0", answer: "again").build(into: test.plugins, as: "Good.so")
        #expect(eventually { test.answer() == "again" })
        #expect(eventually { test.host.generations.contains { $0.state == .retired } })
        let before = try #require(statistics(test.host, "Good/answer"))
        #expect(test.answer() == "again")
        let after = try #require(statistics(test.host, "Good/answer"))
        #expect(before.calls >= 4 && after.calls == before.calls + 1 && after.module == "Good")
        #expect(test.host.statistics.filter { $0.action == "Good/answer" }.count == 1)
    }

    @Test func `A running call states its start, its caller, and the action that called`() async throws {
        let test = try TestHost.withFixture()
        let host = test.host
        let start = Date()
        let own = Task { try await host.call("Later", "untilCancelled") }
        let running = { host.generations.flatMap(\.calls).filter { $0.action == "Later/untilCancelled" } }
        #expect(await becomesTrue { running().count == 1 })
        let call = try #require(running().first)
        #expect(call.callingModule == nil && call.caller == nil)
        // The coarse clock is some milliseconds behind.
        #expect(call.since > start.addingTimeInterval(-1) && call.since <= Date())
        own.cancel()
        _ = await own.result

        let nested = Task { try await host.call("Chain", "forwardLater", ["Later", "untilCancelled"]) }
        #expect(await becomesTrue { running().contains { $0.caller == "Chain/forwardLater" } })
        #expect(running().first { $0.caller != nil }?.callingModule == "FixtureModule")
        nested.cancel()
        _ = await nested.result
    }
}
