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

    @Test func `Subfolders are compared if that is wanted, as a host scans them`() throws {
        let folder = try TemporaryFolder()
        for name in ["old/sub", "old/.hidden", "new/other"] { _ = try folder.folder(name) }
        try folder.copy(CModule(name: "Gone").build(), as: "old/sub/a.so")
        try folder.copy(CModule(name: "Hidden").build(), as: "old/.hidden/a.so")
        try folder.copy(module("1.0.0").build(), as: "old/b.so")
        try folder.copy(module("1.1.0", "buy").build(), as: "new/other/c.so")
        let (old, new) = ("\(folder.path)/old", "\(folder.path)/new")
        let outcome = try program().run("diff", old, new, "--trust", "--recursive")
        #expect(outcome.output == "Gone 1.0.0 was removed\nGood 1.0.0 → 1.1.0\n  added Good/buy\n", "\(outcome)")
        #expect(try program().run("diff", old, new, "--trust").output == "Good 1.0.0 was removed\n")
    }

    @Test func `A library that a module brings along is no module of its folder`() throws {
        let folder = try TemporaryFolder()
        let library = try CFixture.build("int helper(void) { return 1; }", [])
        try folder.copy(library, as: "libhelper.so")
        var module = module("1.0.0")
        module.code = "extern int helper(void);"
        module.activate = "helper();"
        let flags = ["-L\(folder.path)", "-l:libhelper.so", "-Wl,-rpath,$ORIGIN"]
        try folder.copy(module.build(flags), as: "good.so")
        let outcome = try program().run("diff", folder.path, folder.path, "--trust")
        #expect(outcome.code == 0 && outcome.output == "Good 1.0.0: the same interface\n", "\(outcome)")
        try folder.copy(library, as: "other.so")
        let other = try program().run("diff", folder.path, folder.path, "--trust")
        #expect(other.code == 65 && other.errors.contains("other.so"), "\(other)")
    }

    @Test func `What a running host serves is compared with a folder`() throws {
        let folder = try TemporaryFolder()
        let new = try folder.folder("new")
        let first = try module("1.0.0", "buy", "sell").build()
        let host = try HostProgram()
        try copyFile(first, to: "\(host.plugins)/a.so")
        try copyFile(built("libDesk.so"), to: "\(host.plugins)/libDesk.so")
        try copyFile(built("libDesk.so"), to: "\(new)/libDesk.so")
        let socket = "\(folder.path)/s"
        let process = try host.start("run", "--socket", socket, "--trust")
        #expect(process.line { $0.contains("Listening on") } != nil)
        try module("1.1.0", "buy", "sell", "rent").build(into: new, as: "a.so")
        // The version that was loaded counts, not the file.
        try FileManager.default.moveItem(
            atPath: folder.file("broken", "nonsense"), toPath: "\(host.plugins)/broken.tmp")
        try #require(rename("\(host.plugins)/broken.tmp", "\(host.plugins)/a.so") == 0)

        let outcome = try program().run("diff", new, "--attach", socket, "--trust")
        #expect(outcome.code == 0, "\(outcome)")
        let desk = try #require(outcome.output.split(separator: "\n").first)
        #expect(desk.hasPrefix("Desk ") && desk.hasSuffix(": the same interface"), "\(outcome)")
        #expect(outcome.output.hasSuffix("\nGood 1.0.0 → 1.1.0\n  added Good/rent\n"), "\(outcome)")
        let asked = try program().run("diff", new, "--trust", environment: ["PLUGINHOST_SOCKET": socket])
        #expect(asked.output == outcome.output && asked.errors.contains("Using the host on \(socket)"))

        // The other way round: the new version is the one that serves.
        let back = try program().run("diff", new, socket, "--trust", "--json")
        let record = try Value(json: back.output)[1]
        #expect(back.code == 65 && record?["problems"]?[0]?.string?.contains("lower than 1.1.0") == true, "\(back)")
        let file = try program().run("diff", "--attach", socket, "\(new)/a.so", "--trust")
        #expect(file.code == 0 && file.output == "Good 1.0.0 → 1.1.0\n  added Good/rent\n", "\(file)")

        try FileManager.default.removeItem(atPath: "\(new)/libDesk.so")
        let removed = try program().run("diff", new, "--attach", socket, "--trust")
        #expect(removed.code == 65 && removed.output.contains(" was removed\n"), "\(removed)")
        #expect(try program().run("diff", new, new, "--attach", socket).code == 64)
        let none = try program().run("diff", new, environment: ["PLUGINHOST_SOCKET": "\(folder.path)/none"])
        #expect(none.code == 64 && none.errors.contains("no running host"), "\(none)")
    }

    @Test(.disabled(if: isSanitized, "With a sanitizer, no scan process derives types."))
    func `A manifest whose types are not known is not compared with one that has them`() throws {
        let code = """
            static plugin_module module;
            static plugin_types derive(
                void *data, plugin_string without, void (*begin)(void *, plugin_string), void *context) { abort(); }
            static const plugin_type_derivation derivation = {sizeof derivation, 0, derive};
            static const void *extension(void *data, plugin_string name) { return &derivation; }
            """
        let untyped = try CModule(code: code, entry: "module.get_extension = extension;").build()
        let outcome = try program().run("diff", untyped, CModule().build(), "--trust")
        #expect(outcome.code == 65 && outcome.output.isEmpty, "\(outcome)")
        #expect(outcome.errors.contains("Good (old): The types are not known"), "\(outcome)")
        #expect(outcome.errors.contains("The types of the old version of “Good” are not known"), "\(outcome)")
        let both = try program().run("diff", untyped, untyped, "--trust")
        #expect(both.code == 0 && both.errors.contains("Good (new): The types are not known"), "\(both)")

        let (host, folder) = (try HostProgram(), try TemporaryFolder())
        try copyFile(untyped, to: "\(host.plugins)/a.so")
        let process = try host.start("run", "--socket", "\(folder.path)/s", "--trust")
        #expect(process.line { $0.contains("Listening on") } != nil)
        let served = try program().run("diff", CModule().build(), "--attach", "\(folder.path)/s", "--trust")
        #expect(served.code == 65 && served.errors.contains("Good (old): The types are not known"), "\(served)")
    }
}
