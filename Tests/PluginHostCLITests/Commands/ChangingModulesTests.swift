import Foundation
import Glibc
import PluginABI
import PluginHost
import Testing

@testable import PluginHostCLI
@testable import TestSupport

/// Removing, rolling back and following modules with the built program.
@Suite(.timeLimit(.minutes(30))) struct ChangingModulesTests {
    private let folder: TemporaryFolder
    private let plugins: String
    private let state: String

    init() throws {
        folder = try TemporaryFolder()
        (plugins, state) = (folder.path + "/plugins", folder.path + "/state")
        try FileManager.default.createDirectory(atPath: plugins, withIntermediateDirectories: false)
        chmod(plugins, 0o755)
        try add("0.9.0")
    }

    /// Adds module C, whose manifest is text in its file, in any version of five characters.
    private func add(_ version: String) throws {
        var library = try Data(contentsOf: URL(filePath: built("libModuleC.so")))
        while let place = library.range(of: Data("\"0.9.0\"".utf8)), version != "0.9.0" {
            library.replaceSubrange(place, with: Data("\"\(version)\"".utf8))
        }
        let new = plugins + "/.new"
        try writeFile(library, to: new, mode: 0o755)
        rename(new, plugins + "/C.so")
    }

    private func run(_ arguments: String..., attached: Bool = false) throws -> ProgramProcess.Outcome {
        let host = attached ? ["--attach", folder.path + "/s"] : ["--plugins", plugins]
        return try ProgramProcess(arguments + host, environment: ["XDG_STATE_HOME": state]).wait()
    }

    /// A running host that answers.
    private func start() throws -> ProgramProcess {
        let host = try ProgramProcess(
            ["run", "--plugins", plugins, "--socket", folder.path + "/s", "--json"],
            environment: ["XDG_STATE_HOME": state])
        #expect(host.line { $0.contains("\"listening\"") } != nil)
        return host
    }

    private var names: [String] {
        (try? FileManager.default.contentsOfDirectory(atPath: plugins).sorted()) ?? []
    }

    @Test func `list shows the dead routes of a running host's route files`() throws {
        let file = plugins + "/dead.routes.json"
        try writeFile(Data(#"{"app://dead/:id": "Nobody/page"}"#.utf8), to: file, mode: 0o644)
        let host = try start()
        defer { host.signal(SIGTERM) }
        let dead = "The route “app://dead/:id” of the file"
        let list = try run("list", attached: true)
        #expect(list.code == 0 && list.output.contains("ModuleC") && list.errors.contains(dead), "\(list)")
        #expect(list.errors.contains("(deadRoute)"), "\(list)")
        let json = try run("list", "--json", attached: true)
        #expect(json.json?.list?.count == 1 && json.errors.contains(dead), "\(json)")
        // If the command starts its own host, the message is in the log of that host.
        #expect(try run("list").errors.components(separatedBy: dead).count == 2)
    }

    @Test func `versions says how many versions are left out, and why, also for a running host`() throws {
        #expect(try run("remove", "ModuleC").code == 0)
        let kept = try #require(
            FileManager.default.enumerator(atPath: state)?.compactMap { $0 as? String }
                .first { $0.hasSuffix("/version.json") })
        try Data("{".utf8).write(to: URL(filePath: "\(state)/\(kept)"))
        let host = try start()
        defer { host.signal(SIGTERM) }
        for attached in [false, true] {
            let versions = try run("versions", "ModuleC", attached: attached)
            #expect(versions.code == 0)
            for words in ["No version of ModuleC can be put back.", "1 kept version left out", "is damaged"] {
                #expect(versions.output.contains(words), "\(versions)")
            }
            let list = try run("versions", "ModuleC", "--json", attached: attached).json?.list ?? []
            #expect(list.count == 1 && list.first?["error"]?["code"] == "unreadable", "\(list)")
            let error = try run("rollback", "ModuleC", attached: attached).errors
            #expect(error.contains("1 kept version is left out") && error.contains("Remove the folder"), "\(error)")
            #expect(try run("versions", "Nobody", attached: attached).output == "No version of Nobody is kept.\n")
        }
    }

    @Test func `a state folder that cannot be created is reported once, with the reason`() throws {
        try Data().write(to: URL(filePath: state))
        let errors = try run("list").errors
        #expect(errors.components(separatedBy: "Crashes of modules will not be remembered").count == 2, "\(errors)")
        #expect(errors.contains("\(state)/pluginhost/journal cannot be used: Not a directory."), "\(errors)")
    }

    @Test func `remove and rollback work on a folder without a running host`() throws {
        let dry = try run("remove", "ModuleC", "--dry-run")
        #expect(
            dry.code == 0 && dry.output.contains("Nothing was done.") && dry.output.contains("  stops ModuleC 0.9.0")
        )
        #expect(names == ["C.so"])
        let removed = try run("remove", "ModuleC", "--json")
        #expect(removed.code == 0 && removed.json?["moved"] == [.string(plugins + "/C.so")])
        #expect(removed.json?["stopping"]?.list?.first?["name"] == "ModuleC" && removed.json?["dryRun"] == false)
        #expect(names.isEmpty)
        let versions = try run("versions", "ModuleC")
        #expect(versions.output.hasPrefix("VERSION ") && versions.output.contains("\n0.9.0 "))
        let back = try run("rollback", "ModuleC")
        #expect(back.code == 0 && back.output.contains("puts back \(plugins)/C.so\nstarts ModuleC 0.9.0 from"))
        #expect(names == ["C.so"])
    }

    @Test func `a running host rolls back and forward, and shows its generations`() throws {
        let host = try start()
        try add("0.9.1")
        #expect(host.line { $0.contains("\"replaced\"") } != nil)
        #expect(host.line { $0.contains("\"retired\"") } != nil)
        let all = try run("list", "--all", "--json", attached: true).json
        let generations = all?["generations"]?.list ?? []
        #expect(generations.map { $0["state"] } == ["active", "retired"])
        #expect(generations.map { $0["version"] } == ["0.9.1", "0.9.0"] && generations[0]["calls"] == [])
        #expect(all?["retired"]?["count"] == 1 && (all?["retired"]?["mappedBytes"]?.int ?? 0) > 0)
        let table = try run("list", "--all", attached: true).output
        #expect(table.hasPrefix("GENERATION ") && table.contains("\n1 generation retired, "))

        let change = try run("rollback", "ModuleC", attached: true).output
        #expect(change.contains("replaces ModuleC 0.9.1 with 0.9.0 from"))
        #expect(
            try run("versions", "ModuleC", "--json", attached: true).json?.list?.map { $0["serving"] } == [false, true])
        #expect(try run("rollback", "ModuleC", "--to", "0.9.1", attached: true).code == 0)
        #expect(try run("rollback", "ModuleC", "--to", "7.0.0", attached: true).code == 69)
        let error = try run("remove", "ModulC", "--json", attached: true)
        #expect(error.code == 69 && error.json?["error"]?["code"] == "unknownModule")
        #expect(try run("remove", "ModuleC", attached: true).code == 0 && names.isEmpty)
        host.signal(SIGTERM)
        #expect(try host.wait().code == 0)
    }

    @Test func `events shows what has happened, and follows until the host ends`() throws {
        let host = try start()
        try add("0.9.1")
        #expect(host.line { $0.contains("\"replaced\"") } != nil)
        let past = try run("events", attached: true)
        #expect(past.code == 0 && past.output.contains("replaced ModuleC 0.9.0 with 0.9.1"))
        let follower = try ProgramProcess(["events", "--follow", "--json", "--attach", folder.path + "/s"])
        #expect(follower.line { $0.contains("\"event\":\"replaced\"") } != nil)
        #expect(try run("remove", "ModuleC", attached: true).code == 0)
        let removal = follower.line { $0.contains("\"event\":\"removed\"") }
        let event = try removal.map { try Value(json: $0) }
        #expect(event?["generation"]?["name"] == "ModuleC" && event?["reason"]?.string?.isEmpty == false)
        #expect(event?["time"]?.string?.hasSuffix("Z") == true && (event?["number"]?.int ?? 0) > 1)
        host.signal(SIGTERM)
        #expect(try host.wait().code == 0)
        #expect(try follower.wait().code == 0)
    }

    @Test func `events needs a running host`() throws {
        let outcome = try ProgramProcess.run("events", "--follow")
        #expect(outcome.code == 64 && outcome.errors.contains("--attach"))
    }
}

/// Changes that clients request again and again.
@Suite struct EventLogTests {
    private func problem(_ text: String) -> HostChange { .problem(PluginError("x", text)) }

    @Test func `A reader gets later events in order, and the number of lost ones`() async {
        let log = EventLog()
        for number in 1...EventLog.limit + 5 { log.add(problem("\(number)")) }
        let all = await log.events(after: nil, waitingAtMost: nil)
        #expect(all["events"]?.list?.count == EventLog.limit && all["missed"] == 0)
        #expect(all["last"]?.int == EventLog.limit + 5 && all["over"] == false)
        let late = await log.events(after: 2, waitingAtMost: nil)
        #expect(late["missed"] == 3 && late["events"]?.list?.first?["number"] == 6)
        let last = await log.events(after: EventLog.limit + 4, waitingAtMost: .seconds(60))
        #expect(last["events"]?.list?.map { $0["text"] } == [.string("\(EventLog.limit + 5)")])
    }

    @Test func `A waiting reader gets the next event, the end, or nothing at its timeout`() async {
        let log = EventLog()
        async let next = log.events(after: 0, waitingAtMost: .seconds(60))
        log.add(problem("first"))
        #expect(await next["last"] == 1)
        #expect(await log.events(after: 1, waitingAtMost: .milliseconds(1))["events"] == [])
        async let end = log.events(after: 1, waitingAtMost: .seconds(60))
        log.finish()
        #expect(await end["over"] == true)
    }

    @Test func `A reader that is cancelled stops waiting`() async {
        let log = EventLog()
        let waiting = Task { await log.events(after: 0, waitingAtMost: .seconds(600)) }
        waiting.cancel()
        #expect(await waiting.value["events"] == [])
    }
}
