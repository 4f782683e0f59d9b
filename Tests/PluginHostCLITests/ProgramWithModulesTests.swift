internal import Foundation
internal import Glibc
internal import PluginABI
internal import PluginHost
internal import Testing

@testable import PluginHostCLI

/// The program with the sample modules A and B, as they lie beside the test executable.
@Suite(.timeLimit(.minutes(30))) struct ProgramWithModulesTests {
    private let folder = TemporaryFolder()

    init() throws {
        for module in ["ModuleA", "ModuleB"] { try add(module) }
    }

    private func add(_ module: String, as name: String? = nil) throws {
        try copyFile(
            ProgramProcess.folder.appending(path: "lib\(module).so").path,
            to: "\(folder.path)/\(name ?? module).so")
    }

    private func run(_ arguments: String...) throws -> ProgramProcess.Outcome {
        try ProgramProcess(arguments + ["--plugins", folder.path]).finish()
    }

    @Test func `list shows the modules, and what failed with its reason`() throws {
        try "text".write(toFile: folder.path + "/broken.so", atomically: false, encoding: .utf8)
        let outcome = try run("list", "--json")
        #expect(outcome.code == 0)
        let modules = outcome.json?.list ?? []
        #expect(modules.count == 3)
        let moduleA = try #require(modules.first { $0["name"] == "ModuleA" })
        #expect(moduleA["state"] == "active")
        #expect(moduleA["version"]?.string?.isEmpty == false)
        #expect(moduleA["file"]?.string?.hasSuffix("/ModuleA.so") == true)
        #expect(moduleA["targets"]?.list?.contains("A") == true)
        let broken = try #require(modules.first { $0["state"] == "failed" })
        #expect(broken["file"]?.string?.hasSuffix("/broken.so") == true)
        #expect(broken["error"]?["code"]?.string != nil && broken["error"]?["message"]?.string != nil)
        let table = try run("list")
        #expect(table.output.hasPrefix("MODULE ") && table.output.contains("\nModuleA "))
    }

    @Test func `services shows what implements them`() throws {
        let services = try run("services", "--json").json?.list ?? []
        #expect(services.map { $0["name"] } == ["HomeService"])
        #expect(services.first?["module"] == "ModuleA" && services.first?["version"] == "1.2.0")
        let table = try run("services").output
        #expect(table.hasPrefix("SERVICE ") && table.contains("\nHomeService  1.2.0    ModuleA"))
    }

    @Test func `post tells how many got an event, and which failed`() throws {
        try add("FixtureModule")
        let people = try run("post", "fixture.sync", "item=tea")
        #expect(people.code == 0 && people.output == "1 subscriber\n")
        let program = try run("post", "fixture.fails", "--json")
        #expect(program.code == 0 && program.json?["delivered"] == 1)
        #expect(program.json?["failures"]?.list?.first?["source"] == "FixtureModule")
    }

    @Test func `run posts that it is suspended, stops, and posts that it goes on`() throws {
        try add("FixtureModule")
        let host = try ProgramProcess(["run", "--plugins", folder.path])
        #expect(host.line { $0.contains("Watching") } != nil)
        host.signal(SIGTSTP)
        #expect(host.errorLine { $0.contains("heard") && $0.contains("it is suspended") } != nil)
        for _ in 0..<6000 where !host.isStopped { usleep(10_000) }
        #expect(host.isStopped)
        host.signal(SIGCONT)
        #expect(host.errorLine { $0.contains("heard") && $0.contains("it goes on") } != nil)
        host.signal(SIGTERM)
        #expect(try host.finish().code == 0)
    }

    @Test func `run writes a Chrome trace and prints the profile at its end`() throws {
        let trace = NSTemporaryDirectory() + "/pluginhost-trace-\(UUID().uuidString).json"
        defer { try? FileManager.default.removeItem(atPath: trace) }
        let host = try ProgramProcess(["run", "--plugins", folder.path, "--trace", trace, "--profile"])
        #expect(host.line { $0.contains("Watching") } != nil)
        host.signal(SIGTERM)
        let outcome = try host.finish()
        #expect(outcome.code == 0 && outcome.output.contains("PHASE") && outcome.output.contains("loading"))
        let events = try Value(json: String(contentsOfFile: trace, encoding: .utf8))["traceEvents"]?.list ?? []
        #expect(events.contains { $0["cat"] == "loading" && $0["name"]?.string?.hasSuffix("ModuleA.so") == true })
    }

    @Test func `call prints the result, for people and for programs`() throws {
        let people = try run("call", "B", "greet", "name=World")
        #expect(people.code == 0 && people.output == "Hello, World!\n")
        let program = try run("call", "B", "greet", "name=World", "--json")
        #expect(program.code == 0 && program.output == "{\"result\":\"Hello, World!\"}\n")
        let detail = try run("call", "A", "fetchDetail", "key=\"42\"", "page=2", "--json")
        #expect(detail.json?["result"]?["page"] == 2)
        #expect(try run("call", "B", "slowly", "text=abc").output == "cba\n")
    }

    @Test(
        arguments: [
            (["call", "Z", "greet"], 69, "unknownTarget"), (["call", "B", "grett", "name=x"], 69, "unknownAction"),
            (["call", "B", "greet"], 65, "missingParameter"),
            (["call", "B", "greet", "name=3"], 65, "mistypedParameter"),
            (["call", "B", "slowly", "text=x", "milliseconds=20000", "--timeout=0.2"], 75, "deadlineExceeded"),
            (["call", "B", "greet", "name=x", "y=1"], 65, "unknownParameter"),
            (["open", "app://A/nativeSecret"], 77, "notRemote"), (["open", "app://B/greet"], 65, "missingParameter"),
        ] as [([String], Int32, String)])
    func `each refusal has its code and exit code`(arguments: [String], exit: Int32, code: String) throws {
        let outcome = try ProgramProcess(arguments + ["--json", "--plugins", folder.path]).finish()
        #expect(outcome.code == exit)
        #expect(outcome.json?["error"]?["code"] == .string(code))
    }

    @Test func `open is a remote caller unless told otherwise`() throws {
        #expect(try run("open", "app://B/greet?name=a%20b").output == "Hello, a b!\n")
        #expect(try run("open", "app://A/nativeSecret").code == 77)
        #expect(try run("open", "--local", "app://A/nativeSecret").code == 0)
        #expect(try run("open", "shop://B/greet?name=x", "--scheme", "shop").output == "Hello, x!\n")
    }

    @Test func `inspect shows the manifest and registers nothing`() throws {
        let file = folder.path + "/ModuleA.so"
        let outcome = try ProgramProcess.run("inspect", file, "--json")
        #expect(outcome.code == 0)
        #expect(outcome.json?["manifest"]?["name"] == "ModuleA")
        #expect(try ProgramProcess.run("inspect", file).output.contains("ModuleA"))
    }

    @Test func `a running host answers as a local one does, and takes modules while it runs`() throws {
        try FileManager.default.removeItem(atPath: folder.path + "/ModuleB.so")
        let socket = folder.path + "/s"
        let host = try ProgramProcess(["run", "--plugins", folder.path, "--socket", socket, "--json"])
        #expect(host.line { $0.contains("\"listening\"") } != nil)
        #expect(try ProgramProcess.run("call", "B", "greet", "name=x", "--attach", socket).code == 69)
        try add("ModuleB", as: "late")
        #expect(host.line { $0.contains("\"added\"") && $0.contains("ModuleB") } != nil)
        let call = try ProgramProcess.run("call", "B", "greet", "name=x", "--attach", socket, "--json")
        #expect(call.code == 0 && call.output == "{\"result\":\"Hello, x!\"}\n")
        let refused = try ProgramProcess.run("open", "app://A/nativeSecret", "--attach", socket)
        #expect(refused.code == 77, "\(refused)")
        #expect(try ProgramProcess.run("open", "--local", "app://A/nativeSecret", "--attach", socket).code == 0)
        let list = try ProgramProcess.run("list", "--attach", socket, "--json")
        #expect(list.json?.list?.count == 2)
        host.signal(SIGTERM)
        #expect(try host.finish().code == 0)
    }
}
