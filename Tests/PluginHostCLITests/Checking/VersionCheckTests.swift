import Foundation
import PluginABI
import PluginHost
import Testing

@testable import TestSupport

/// `pluginhost diff`, and `pluginhost check` with '--against' or '--facade'.
@Suite(.timeLimit(.minutes(30))) struct VersionCheckTests: Checking {
    private func module(_ version: String, _ actions: String...) -> CModule {
        CModule(version: version, actions: actions.map { ($0, "reply(call, \"\");") })
    }

    @Test func `A module is checked against its last version`() throws {
        let old = try module("1.0.0", "buy", "sell").build()
        let (outcome, report) = try check(module("1.1.0", "buy", "rent").build(), "--no-calls", "--against", old)
        let version = result("version", of: report)
        #expect(outcome.code == 65 && version?["outcome"] == "failure")
        #expect(version?["findings"]?[0]?["message"]?.string?.contains("it ought to be 2.0.0 or higher") == true)
        #expect(version?["notes"] == ["removed Good/sell (breaking)", "added Good/rent"])
        let right = try program().run(
            ["check", module("2.0.0", "buy", "rent").build(), "--trust", "--no-calls", "--against", old])
        #expect(right.code == 0, "\(right)")
        #expect(
            right.output.contains("pass     version      2.0.0 after 1.0.0: 1 breaking change, 1 addition\n"),
            "\(right)")
        let missing = try program().run("check", old, "--trust", "--no-calls", "--against", "/missing.so")
        #expect(missing.code == 66 && missing.errors.contains("'--against /missing.so'"), "\(missing)")
    }

    @Test func `A façade that is out of date is found`() throws {
        let folder = try TemporaryFolder()
        let file = try module("1.0.0", "buy").build()
        let facade = try program().run("facade", file, "--name", "Shop", "--public", "--trust").output
        let kept = try folder.file("Shop.swift", Data(facade.utf8))
        #expect(try check(file, "--no-calls", "--facade", kept).outcome.code == 0)
        let (outcome, report) = try check(module("1.0.0", "buy", "sell").build(), "--no-calls", "--facade", kept)
        let message = result("facade", of: report)?["findings"]?[0]?["message"]?.string ?? ""
        #expect(outcome.code == 65 && message.contains("\(kept) is out of date: line "), "\(report)")
        #expect(message.hasSuffix("--name Shop --public > \(kept)"))
        let other = try folder.file("Other.swift", Data("let x = 1".utf8))
        #expect(try check(file, "--no-calls", "--facade", other).outcome.code == 65)
    }

    @Test func `Two files are compared`() throws {
        let (old, new) = (try module("1.0.0", "buy").build(), try module("1.1.0", "buy", "sell").build())
        let outcome = try program().run("diff", old, new, "--trust")
        #expect(outcome.code == 0 && outcome.output == "Good 1.0.0 → 1.1.0\n  added Good/sell\n", "\(outcome)")
        let back = try program().run("diff", new, old, "--trust", "--json")
        let record = try Value(json: back.output)[0]
        #expect(back.code == 65 && record?["passed"] == false && record?["required"] == "2.0.0", "\(back)")
        #expect(record?["changes"]?[0]?["breaking"] == true && record?["changes"]?[0]?["change"] == "removed")
        let same = try program().run("diff", old, old, "--trust")
        #expect(same.code == 0 && same.output == "Good 1.0.0: the same interface\n")
    }

    @Test func `Two folders are compared by the names of their modules`() throws {
        let folder = try TemporaryFolder()
        for name in ["old", "new"] { _ = try folder.folder(name) }
        try folder.copy(CModule(name: "Gone").build(), as: "old/a.so")
        try folder.copy(module("1.0.0").build(), as: "old/b.so")
        try folder.copy(module("1.1.0", "buy").build(), as: "new/c.so")
        try folder.copy(CModule(name: "New").build(), as: "new/d.so")
        let outcome = try program().run("diff", "\(folder.path)/old", "\(folder.path)/new", "--trust")
        #expect(
            outcome.output == "Gone 1.0.0 was removed\nGood 1.0.0 → 1.1.0\n  added Good/buy\nNew 1.0.0 was added\n")
        #expect(outcome.code == 65 && outcome.errors.contains("would surprise callers: Gone"), "\(outcome)")
        #expect(try program().run("diff", "\(folder.path)/old", "\(folder.path)/new/c.so", "--trust").code == 64)
        #expect(try program().run("diff", "\(folder.path)/old", "/missing", "--trust").code == 66)
    }
}
