import Dispatch
import Foundation
import PluginABI
import PluginHost
import Testing

@testable import TestSupport

/// Where a host has spent its time.
@Suite struct ProfileTests {
    @Test func `The profile contains discovery, loading, hooks and events, with their times`() async throws {
        let test = try TestHost()
        var module = CModule(setUp: "usleep(20000);")
        module.hooks = ["init": "start_reply(call);", "didStart": ""]
        module.asyncHooks = ["init"]
        module.events = [("shop.sold", "", "")]
        try module.build(into: test.plugins, as: "a.so")
        try test.start()
        try await test.host.post("shop.sold")
        let entries = test.host.profile.entries
        #expect(entries.contains { $0.phase == .discovery && $0.name == test.plugins })
        #expect(entries.contains { $0.phase == .loading && $0.name.hasSuffix("/a.so") && $0.duration > .zero })
        let hooks = entries.filter { $0.phase == .hook && $0.module == "Good" }
        #expect(hooks.map(\.name) == ["setUp", "init", "didStart"])
        #expect(hooks[0].duration >= .milliseconds(20) && hooks[1].duration >= .milliseconds(50))
        #expect(entries.contains { $0.phase == .event && $0.name == "shop.sold" })
    }

    @Test func `The Chrome trace has an event for each entry, and a name for each row`() async throws {
        let test = try TestHost.withFixture()
        try await test.host.post("fixture.sync")
        let trace = try Value(json: test.host.profile.chromeTrace)
        let events = trace["traceEvents"]?.list ?? []
        let bars = events.filter { $0["ph"] == "X" }
        #expect(bars.count == test.host.profile.entries.count)
        #expect(bars.contains { $0["name"] == "fixture.sync" && $0["cat"] == "event" && $0["dur"]?.double ?? 0 > 0 })
        let rows = Set(events.filter { $0["ph"] == "M" }.compactMap { $0["tid"]?.int })
        #expect(bars.allSatisfy { $0["tid"]?.int.map(rows.contains) == true })
    }

    @Test func `A profile keeps a hundred thousand entries, and counts all others, from whatever threads`()
        async throws
    {
        let test = try TestHost.withFixture()
        let before = test.host.profile.entries.count
        let (threads, each) = (4, 26_000)
        DispatchQueue.concurrentPerform(iterations: threads) { _ in
            for _ in 0..<each { _ = try? test.host.post("nobody.subscribes") }
        }
        for _ in 0..<10 { try await test.host.post("nobody.subscribes") }
        let profile = test.host.profile
        #expect(profile.entries.count == 100_000)
        #expect(profile.entries.count + profile.dropped == before + threads * each + 10)
    }
}
