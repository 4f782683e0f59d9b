import Foundation
import Glibc
import PluginABI
import PluginHost
import Testing

@testable import PluginHostCLI
@testable import TestSupport

@Suite(.timeLimit(.minutes(30))) struct TopTests {
    private func action(_ name: String, calls: Int, errors: Int = 0) -> Value {
        ["module": "M", "action": .string(name), "calls": .int(calls), "errors": .int(errors)]
    }

    @Test func `rates are differences, the most called action first`() {
        let before = Top.Sample([action("A/a", calls: 100), action("A/b", calls: 5), action("A/c", calls: 9)])
        let after = Top.Sample([
            action("A/a", calls: 101), action("A/b", calls: 25, errors: 4), action("A/c", calls: 2),
            action("A/d", calls: 4),
        ])
        let rates = after.rates(since: before, seconds: 2)
        #expect(rates.map { $0.text("action") } == ["A/b", "A/d", "A/a", "A/c"])
        #expect(rates.map { $0["callsPerSecond"] } == [10.0, 2.0, 0.5, 0.0])
        #expect(rates[0]["errorsPerSecond"] == 2.0)
        let lines = RecordTable.rates.text(rates).split(separator: "\n")
        #expect(lines[0].hasPrefix("MODULE  CALLS/S  ERRORS/S  CALLS  ERRORS  MEDIAN"))
        #expect(lines[1].hasPrefix("M       10.0     2.0       25     4 "))
    }

    @Test func `the actions of a running host are shown, and nothing without one`() throws {
        let folder = try TemporaryFolder()
        let plugins = try folder.folder("plugins")
        try folder.copy(built("libModuleC.so"), as: "plugins/libModuleC.so")
        let socket = folder.path + "/s"
        let host = try ProgramProcess(["run", "--plugins", plugins, "--socket", socket])
        #expect(host.line { $0.contains("Listening on") } != nil)
        #expect(try ProgramProcess.run("call", "C", "add", "a=1", "--attach", socket).code == 0)
        let table = try ProgramProcess.run("top", "--once", "--interval", "0.1", "--attach", socket)
        #expect(table.code == 0 && table.output.contains("C/add"))
        let json = try ProgramProcess.run("top", "--json", "--interval", "0.1", "--attach", socket)
        let record = json.json?.list?.first { $0["action"] == "C/add" }
        #expect(record?["calls"] == 1 && record?["callsPerSecond"]?.double == 0)
        let live = try TerminalProcess(["top", "--interval", "0.1", "--attach", socket], environment: [:])
        for _ in 0..<2 { #expect(live.shows("\u{1B}[H\u{1B}[J") && live.shows("C/add")) }
        live.signal(SIGINT)
        #expect(live.wait() == SIGINT)
        host.signal(SIGTERM)
        #expect(try host.wait().code == 0)
        #expect(try ProgramProcess.run("top").code == 64)
        #expect(try ProgramProcess.run("top", "--interval", "0").code == 64)
    }
}
