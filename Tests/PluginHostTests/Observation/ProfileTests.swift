import Dispatch
import Foundation
import PluginABI
import PluginHost
import Testing

@testable import TestSupport

/// What a host has spent its time on.
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
    // MARK: Marks

    /// A module that sets marks when it is called.
    private static let marking = Manifest("Marks", version: "1.0.0") {
        Target("Marks") {
            Action("set", .context(), .required("name", String.self), .optional("seconds", Double.self)) {
                context, name, seconds in
                context.mark(name, lasting: .seconds(seconds ?? 0))
            }
            Action("measure", .context()) { (context: HostContext) throws -> Int in
                _ = try? context.measure("fails") { throw PluginError("no", "Not today.") }
                return context.measure("succeeds") { 7 }
            }
            Action("measureLater", .context()) { context async -> Int in
                await context.measure("waits") {
                    try? await Task.sleep(for: .milliseconds(20))
                    return 8
                }
            }
            Action("flood", .context()) { context in for number in 0..<10_100 { context.mark("\(number)") } }
        }
    }

    private func marks(_ host: PluginHost) -> [HostProfile.Entry] { host.profile.entries.filter { $0.phase == .mark } }

    @Test func `Modules and the program set marks, of moments and of work that has just ended`() async throws {
        let test = try TestHost([])
        try test.host.register(Self.marking)
        test.host.mark("program")
        try test.host.perform("Marks", "set", ["name": "moment"])
        #expect(try test.host.perform("Marks", "measure") == 7)
        #expect(try await test.host.call("Marks", "measureLater") == 8)
        let marks = marks(test.host)
        #expect(marks.map(\.name) == ["program", "moment", "fails", "succeeds", "waits"])
        #expect(marks.map(\.module) == [nil, "Marks", "Marks", "Marks", "Marks"])
        #expect(marks[0].duration == .zero && marks[1].duration == .zero)
        #expect(marks[2].duration > .zero && marks[4].duration >= .milliseconds(20))
        #expect(test.host.measure("own") { 3 } == 3 && self.marks(test.host).last?.name == "own")
    }

    @Test func `A module in C sets marks`() async throws {
        let module = CModule(
            actions: [
                (
                    "mark",
                    """
                    const plugin_profile *profile = host->get_extension(host, text(PLUGIN_PROFILE_EXTENSION));
                    usleep(2000);
                    profile->mark(host, text("moment"), 0);
                    profile->mark(host, text("work"), 1000000);
                    profile->mark(host, (plugin_string){NULL, 0}, -1);
                    reply(call, "");
                    """
                )
            ])
        let test = try TestHost([module.build()])
        try test.host.perform("Good", "mark")
        let marks = marks(test.host)
        #expect(marks.map(\.name) == ["moment", "work", ""] && marks.allSatisfy { $0.module == "Good" })
        #expect(marks.map(\.duration) == [.zero, .milliseconds(1), .zero])
    }

    @Test func `A mark lasts no longer than the host has existed, and a long name is cut off between characters`()
        throws
    {
        let test = try TestHost([])
        test.host.mark("long ago", lasting: .seconds(1 << 40))
        test.host.mark("before", lasting: .seconds(-1))
        test.host.mark("x" + String(repeating: "é", count: 200))
        test.host.mark(String(repeating: "é", count: 128))
        let marks = marks(test.host)
        #expect(marks[0].start == .zero && marks[0].duration > .zero && marks[1].duration == .zero)
        #expect(marks[2].name == "x" + String(repeating: "é", count: 127) + "…")
        #expect(marks[3].name == String(repeating: "é", count: 128))
    }

    @Test func `A module has ten thousand marks, and does not take room from others; the rest is counted`() throws {
        let test = try TestHost([])
        try test.host.register(Self.marking)
        let before = test.host.profile.dropped
        try test.host.perform("Marks", "flood")
        test.host.mark("program")
        let marks = marks(test.host)
        #expect(marks.count { $0.module == "Marks" } == 10_000 && marks.last?.name == "program")
        #expect(test.host.profile.dropped - before == 100)
    }

    @Test func `The Chrome trace has marks: bars for work, instants for moments`() throws {
        let test = try TestHost([])
        try test.host.register(Self.marking)
        try test.host.perform("Marks", "set", ["name": "moment"])
        try test.host.perform("Marks", "set", ["name": "work", "seconds": 0.000_001])
        let events = try Value(json: test.host.profile.chromeTrace)["traceEvents"]?.list ?? []
        let marks = events.filter { $0["cat"] == "mark" }
        #expect(marks.map { $0["name"] } == ["moment", "work"])
        #expect(marks.map { $0["ph"] } == ["i", "X"])
        #expect(marks[0]["s"] == "t" && marks[0]["dur"] == nil && marks[1]["dur"] == 1)
        #expect(marks.allSatisfy { $0["args"]?["module"] == "Marks" })
        let row = events.first { $0["ph"] == "M" && $0["tid"] == marks[0]["tid"] }
        #expect(row?["args"]?["name"] == "Marks")
    }
}
