import Foundation
import Glibc
import PluginABI
import PluginHost
import Testing

@testable import PluginHostCLI
@testable import TestSupport

/// The program with the sample modules A and B, which lie beside the test executable.
@Suite(.timeLimit(.minutes(30))) struct ProgramWithModulesTests {
    private let folder: TemporaryFolder

    init() throws {
        folder = try TemporaryFolder()
        for module in ["ModuleA", "ModuleB"] { try add(module) }
    }

    private func add(_ module: String, as name: String? = nil) throws {
        try copyFile(
            built("lib\(module).so"),
            to: "\(folder.path)/\(name ?? module).so")
    }

    private func run(_ arguments: String...) throws -> ProgramProcess.Outcome {
        try ProgramProcess(arguments + ["--plugins", folder.path]).wait()
    }

    @Test func `list shows the modules, and failed ones with the reason`() throws {
        try writeFile(Data("text".utf8), to: folder.path + "/broken.so")
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

    @Test func `open and resolve take the HTTP method of a URL`() throws {
        var module = CModule(name: "Shop")
        module.moreManifest = #""routes": [{"pattern": "app://item/now", "action": "Shop/answer", "method": "PUT"}], "#
        try module.build(into: folder.path, as: "shop.so")
        #expect(try run("open", "--local", "app://item/now", "--method", "PUT").output == "yes\n")
        #expect(
            try run("resolve", "--local", "app://item/now", "--method", "PUT").output.hasPrefix("Leads to Shop/answer"))
        let refused = try run("open", "--local", "app://item/now")
        #expect(refused.code == 69 && refused.errors.contains("methodNotAllowed"))
        #expect(try run("open", "--local", "app://item/now", "--method", "put").code == 0)
        let unknown = try run("open", "app://item/now", "--method", "HEAD")
        #expect(unknown.code == 64 && unknown.errors.contains("'HEAD' of '--method' is not one of 'GET', "))
    }

    @Test func `With --lazy, a module that a command has read is known to the next one, and a call starts it`() throws {
        let plugins = try folder.folder("known")
        try CModule(name: "Known").build(into: plugins, as: "known.so")
        usleep(30_000)  // The cache keeps nothing about a file that has just changed.
        func run(_ arguments: String...) throws -> ProgramProcess.Outcome {
            try ProgramProcess(
                arguments + ["--lazy", "--plugins", plugins], environment: ["XDG_CACHE_HOME": folder.path + "/cache"]
            ).wait()
        }
        for state: Value in ["active", "registered"] {
            let outcome = try run("list", "--json")
            #expect(outcome.json?.list?.first?["state"] == state, "\(outcome.errors)")
        }
        let outcome = try run("call", "Known", "answer")
        #expect(outcome.output == "yes\n", "\(outcome.errors)")
    }

    @Test func `list shows a library beside a module as such in the default folder`() throws {
        let library = try CFixture.build(
            "int in_default_folder(void) { return 1; }", ["-Wl,-soname,libdefault.so"], name: "libdefault.so")
        let module = CModule(
            body: "if (!in_default_folder()) return;", code: "int in_default_folder(void);")
        let folder = try TemporaryFolder()
        let plugins = try folder.folder("plugins")
        try folder.copy(library, as: "plugins/libdefault.so")
        try module.build(into: plugins, as: "good.so", [library, "-Wl,-rpath,$ORIGIN"])
        let outcome = try ProgramProcess.run("list", "--json", folder: folder.path)
        #expect(outcome.module("good.so")?["state"] == "active")
        #expect(outcome.module("libdefault.so")?["state"] == "library")
    }

    @Test func `resolve explains a URL of a host, for remote and for local callers`() throws {
        let detail = try run("resolve", "app://shop/detail/lamp/2")
        #expect(detail.code == 0 && detail.errors == "")
        #expect(detail.output.hasPrefix("Leads to A/fetchDetail of ModuleA, by the route app://shop/detail/:key"))
        #expect(detail.output.contains("Parameters:\n  key: lamp\n  page: 2\n"))
        let json = try run("resolve", "app://shop/detail/lamp/2", "--json").json
        #expect(json?["action"] == "A/fetchDetail" && json?["parameters"] == ["key": "lamp", "page": 2])
        #expect(json?["error"] == nil && json?["others"] == [] && json?["othersComplete"] == true)
        let secret = try run("resolve", "app://A/nativeSecret")
        #expect(secret.code == 0 && secret.output.hasPrefix("Leads nowhere.\nCannot be opened: "))
        #expect(secret.output.contains("A/nativeSecret of ModuleA is not declared remote. (noRoute)"))
        let local = try run("resolve", "app://A/nativeSecret", "--local")
        #expect(local.output == "Leads to A/nativeSecret of ModuleA, which the URL itself names.\n")
    }

    @Test func `Dead routes are named in the lists of routes and modules, and in the log`() throws {
        let file = folder.path + "/dead.routes.json"
        try #"{"app://dead/:id": "A/price"}"#.write(toFile: file, atomically: true, encoding: .utf8)
        defer { try? FileManager.default.removeItem(atPath: file) }
        let dead = "The route “app://dead/:id” of the file"
        let routes = try run("routes")
        #expect(routes.output.contains("  \(dead)") && routes.errors.contains(dead), "\(routes.output)")
        let record = try run("routes", "--json").json?.list?.first { $0["pattern"] == "app://dead/:id" }
        #expect(record?["problem"]?["code"] == "deadRoute")
    }

    @Test func `URLs may be as long as the configuration or the option says`() throws {
        let file = folder.path + "/configuration.json"
        func open(_ length: Int, _ arguments: String...) throws -> ProgramProcess.Outcome {
            let url = "app://B/greet?name=" + String(repeating: "x", count: length - 19)
            return try ProgramProcess(["open", url, "--json", "--plugins", folder.path] + arguments).wait()
        }
        #expect(try open(16_384).code == 0)
        #expect(try open(16_385).output.contains("invalidURL"))
        try #"{"maximumURLLength": 300}"#.write(toFile: file, atomically: true, encoding: .utf8)
        #expect(try open(300, "--config", file).code == 0)
        #expect(try open(301, "--config", file).output.contains("invalidURL"))
        #expect(try open(301, "--config", file, "--url-length", "301").code == 0)
        try #"{"maximumURLLength": 3}"#.write(toFile: file, atomically: true, encoding: .utf8)
        #expect(try open(30, "--config", file).output.contains("invalidConfiguration"))
    }

    @Test func `A module may be as large as --max-file-size says, and the error shortens an invalid size`() throws {
        let size = try FileManager.default.attributesOfItem(atPath: folder.path + "/ModuleA.so")[.size] as? Int ?? 0
        for (bytes, isTaken) in [(size, true), (size - 1, false)] {
            let outcome = try run("call", "A", "fetchDetail", "key=lamp", "--json", "--max-file-size", "\(bytes)")
            #expect((outcome.code == 0) == isTaken, "\(outcome)")
            let list = try run("list", "--json", "--max-file-size", "\(bytes)").json?.list ?? []
            let error = list.first { $0["file"]?.string?.hasSuffix("/ModuleA.so") == true }?["error"]
            #expect((error == nil) == isTaken)
            let said = error?["message"]?.string?.contains("at most \(bytes) are accepted") == true
            #expect(isTaken || error?["code"] == "invalidFile" && said, "\(error?.json ?? "")")
        }
        for bytes in ["0", "-1", "1e9", "much", "", String(repeating: "9", count: 100_000)] {
            for option in ["--max-file-size", "--url-length"] {
                let outcome = try run("list", option, bytes)
                #expect(outcome.code == 64 && outcome.errors.contains("'\(option)'"), "\(outcome)")
                #expect(outcome.errors.utf8.count < 2000)
            }
        }
    }

    @Test func `routes says which routes were not compared with all others`() {
        func text(_ isComplete: Bool) -> String {
            let route: Value = ["pattern": "a://h/:x(a)", "overlaps": [], "overlapsComplete": .bool(isComplete)]
            return RecordTable.routes.text([route])
        }
        #expect(text(false).contains("too large to be compared with all"))
        #expect(!text(true).contains("compared"))
    }

    @Test func `routes lists the routes with their overlaps`() throws {
        let file = folder.path + "/more.routes.json"
        let entries =
            #"{"app://o/:x(a|b)": "A/fetchDetail", "app://o/:y(b|c)": "B/greet", "app://other/:id": "B/greet"}"#
        try writeFile(Data(entries.utf8), to: file)
        let routes = try run("routes", "--json").json?.list ?? []
        let first = try #require(routes.first { $0["pattern"] == "app://o/:x(a|b)" })
        #expect(first["action"] == "A/fetchDetail" && first["overlaps"] == ["app://o/:y(b|c)"], "\(first)")
        let other = try #require(routes.first { $0["pattern"] == "app://other/:id" })
        #expect(other["overlaps"] == [] && other["overlapsComplete"] == true, "\(other)")
        let table = try run("routes").output
        #expect(table.contains("app://o/:y(b|c)") && table.contains("the file \(file)"), "\(table)")
    }

    @Test func `Interceptors of modules take effect when the configuration names them, and list shows them`() throws {
        try add("FixtureModule")
        let file = folder.path + "/configuration.json"
        func configure(_ text: String) throws { try text.write(toFile: file, atomically: true, encoding: .utf8) }
        let greeting = ["call", "B", "greet", "name=you", "--json", "--config", file]
        try configure(#"{"interceptors": [{"module": "FixtureModule", "interceptor": "mark", "target": "B"}]}"#)
        #expect(
            try ProgramProcess(greeting + ["--plugins", folder.path]).wait().json?["result"] == [
                "marked": "Hello, you!"
            ])
        let table = try run("list", "--config", file).output
        #expect(table.contains("interceptor mark for the target B") && table.contains("linger, not in effect"))
        let offered = try ProgramProcess.run("inspect", folder.path + "/FixtureModule.so", "--json").json
        #expect(offered?["manifest"]?["interceptors"]?.list?.map { $0["name"] } == ["mark", "linger"])

        try configure(#"{"interceptors": [{"module": "Nobody", "interceptor": "mark", "target": "B"}]}"#)
        let refused = try ProgramProcess(greeting + ["--plugins", folder.path]).wait()
        #expect(refused.code == 77 && refused.json?["error"]?["code"] == "interceptorMissing")
        try configure(#"{"interceptors": [{"module": "Nobody"}]}"#)
        #expect(try ProgramProcess(greeting + ["--plugins", folder.path]).wait().code == 78)

        try configure(#"{"interceptors": [{"module": "FixtureModule", "interceptor": "linger"}]}"#)
        let socket = folder.path + "/socket"
        let host = try ProgramProcess([
            "run", "--plugins", folder.path, "--config", file, "--socket", socket, "--json",
        ])
        #expect(host.line { $0.contains("\"listening\"") } != nil)
        let late = ["call", "B", "greet", "name=you", "--attach", socket, "--timeout", "0.01"]
        #expect(try ProgramProcess(late).wait().code == 75)
        let list = try ProgramProcess(["list", "--attach", socket]).wait().output
        #expect(list.contains("interceptor linger for all calls; ran past 1 deadline, the last in B/greet"))
        try configure("{}")
        let deadline = ContinuousClock.now + .seconds(600)
        var records: Value?
        repeat {
            records = try ProgramProcess(["list", "--attach", socket, "--json"]).wait().json?.list?
                .first { $0["name"] == "FixtureModule" }?["interceptors"]
        } while records?[1]?["scopes"]?.list?.isEmpty == false && ContinuousClock.now < deadline
        #expect(records?[1]?["name"] == "linger" && records?[1]?["scopes"] == [])
        host.signal(SIGTERM)
        _ = try host.wait()
    }

    @Test func `list --recursive also shows the modules in subfolders`() throws {
        try FileManager.default.createDirectory(atPath: "\(folder.path)/below", withIntermediateDirectories: false)
        try add("FixtureModule", as: "below/Fixture")
        #expect(try run("list", "--json").json?.list?.count == 2)
        let modules = try run("list", "--recursive", "--json").json?.list ?? []
        #expect(modules.count == 3)
        #expect(modules.contains { $0["file"]?.string?.hasSuffix("/below/Fixture.so") == true })
    }

    @Test func `services shows what implements each service`() throws {
        let services = try run("services", "--json").json?.list ?? []
        #expect(services.map { $0["name"] } == ["HomeService"])
        #expect(services.first?["module"] == "ModuleA" && services.first?["version"] == "1.2.0")
        let table = try run("services").output
        #expect(table.hasPrefix("SERVICE ") && table.contains("\nHomeService  1.2.0    ModuleA"))
    }

    @Test func `stats shows what was called, with errors and durations`() throws {
        let none = try run("stats", "--json")
        #expect(none.code == 0 && none.json?.list?.allSatisfy { $0["action"]?.string?.hasPrefix("@") == true } == true)
        let socket = folder.path + "/socket"
        let host = try ProgramProcess(["run", "--plugins", folder.path, "--socket", socket, "--json"])
        #expect(host.line { $0.contains("\"listening\"") } != nil)
        func attached(_ arguments: String...) throws -> ProgramProcess.Outcome {
            try ProgramProcess(arguments + ["--attach", socket]).wait()
        }
        #expect(try attached("call", "B", "greet", "name=you").code == 0)
        #expect(try attached("call", "B", "greet", "nome=you").code != 0)
        let statistics = try attached("stats", "--json").json?.list ?? []
        let greet = try #require(statistics.first { $0["action"] == "B/greet" })
        #expect(greet["module"] == "ModuleB" && greet["calls"] == 2 && greet["errors"] == 1)
        #expect(greet["measured"]?.int == 1 && greet["median"]?.double != nil && greet["maximum"]?.double != nil)
        let table = try attached("stats").output
        #expect(table.hasPrefix("MODULE ") && table.contains("B/greet"))
        host.signal(SIGTERM)
        _ = try host.wait()
    }

    @Test func `Objects that a running host has returned can be called and released`() throws {
        let socket = folder.path + "/socket"
        let host = try ProgramProcess(["run", "--plugins", folder.path, "--socket", socket, "--json"])
        #expect(host.line { $0.contains("\"listening\"") } != nil)
        func attached(_ arguments: String...) throws -> ProgramProcess.Outcome {
            try ProgramProcess(arguments + ["--attach", socket, "--json"]).wait()
        }
        let found = try attached("call", "Counter", "search", "text=a").json?["result"]
        let object = String(try #require(found?["object"]?.int))
        let first = try attached("call", object, "next", "--object")
        #expect(first.code == 0 && first.json?["result"]?.string != nil)
        #expect(try attached("call", object, "next", "--object").json?["result"] != first.json?["result"])
        #expect(try attached("call", object, "nixt", "--object").json?["error"]?["code"] == "unknownAction")
        #expect(try attached("release", object).code == 0)
        #expect(try attached("call", object, "next", "--object").json?["error"]?["code"] == "unknownObject")
        #expect(try attached("release", object).json?["error"]?["code"] == "unknownObject")
        #expect(try run("call", "lamp", "next", "--object").code == 64)
        host.signal(SIGTERM)
        _ = try host.wait()
    }

    @Test func `post says how many subscribers got an event, and which failed`() throws {
        try add("FixtureModule")
        let people = try run("post", "fixture.sync", "item=tea")
        #expect(people.code == 0 && people.output == "1 subscriber\n")
        let program = try run("post", "fixture.fails", "--json")
        #expect(program.code == 0 && program.json?["delivered"] == 1)
        #expect(program.json?["failures"]?.list?.first?["source"] == "FixtureModule")
    }

    @Test func `run posts an event before it is suspended and another when it continues`() throws {
        try add("FixtureModule")
        let host = try ProgramProcess(["run", "--plugins", folder.path])
        #expect(host.line { $0.contains("Watching") } != nil)
        host.signal(SIGTSTP)
        #expect(host.errorLine { $0.contains("heard") && $0.contains("it is suspended") } != nil)
        for _ in 0..<30_000 {
            if host.isStopped { break }
            usleep(10_000)
        }
        #expect(host.isStopped)
        host.signal(SIGCONT)
        #expect(host.errorLine { $0.contains("heard") && $0.contains("it goes on") } != nil)
        host.signal(SIGTERM)
        #expect(try host.wait().code == 0)
    }

    @Test func `run writes a Chrome trace and prints the profile at its end`() throws {
        let trace = NSTemporaryDirectory() + "/pluginhost-trace-\(UUID().uuidString).json"
        defer { try? FileManager.default.removeItem(atPath: trace) }
        let host = try ProgramProcess(["run", "--plugins", folder.path, "--trace", trace, "--profile"])
        #expect(host.line { $0.contains("Watching") } != nil)
        host.signal(SIGTERM)
        let outcome = try host.wait()
        #expect(outcome.code == 0 && outcome.output.contains("PHASE") && outcome.output.contains("loading"))
        let events = try Value(json: String(contentsOfFile: trace, encoding: .utf8))["traceEvents"]?.list ?? []
        #expect(events.contains { $0["cat"] == "loading" && $0["name"]?.string?.hasSuffix("ModuleA.so") == true })
    }

    @Test func `call prints the result, for people and for programs`() throws {
        let people = try run("call", "B", "greet", "name=World")
        #expect(people.code == 0 && people.output == "Hello, World!\n")
        let program = try run("call", "B", "greet", "name=World", "--json")
        #expect(program.code == 0 && program.output == "{\"result\":\"Hello, World!\"}\n")
        let detail = try run("call", "A", "fetchDetail", "key=42", "page=2", "--json")
        #expect(detail.json?["result"]?["page"] == 2)
        #expect(try run("call", "B", "slowly", "text=abc").output == "cba\n")
        let service = try run(
            "call", "--service", "HomeService", "--from", "1.0.0", "fetchDetail", "key=lamp", "--json")
        #expect(service.json?["result"]?["title"] == "Detail of lamp")
    }

    @Test(
        arguments: [
            (["call", "Z", "greet"], 69, "unknownTarget"), (["call", "B", "grett", "name=x"], 69, "unknownAction"),
            (["call", "B", "greet"], 65, "missingParameter"),
            (["call", "A", "fetchDetail", "key=x", "page=two"], 65, "mistypedParameter"),
            (["call", "B", "slowly", "text=x", "milliseconds=20000", "--timeout=0.2"], 75, "deadlineExceeded"),
            (["call", "B", "greet", "name=x", "y=1"], 65, "unknownParameter"),
            (["call", "HomeService", "fetchDetail", "--service", "--from=9.0.0"], 69, "unknownService"),
            (["call", "HomeService", "fetchDetail", "--from=1.0.0"], 64, "usage"),
            (["open", "app://A/nativeSecret"], 69, "noRoute"), (["open", "app://B/greet"], 65, "missingParameter"),
        ] as [([String], Int32, String)])
    func `each refusal has its own error code and exit code`(arguments: [String], exit: Int32, code: String) throws {
        let outcome = try ProgramProcess(arguments + ["--json", "--plugins", folder.path]).wait()
        #expect(outcome.code == exit)
        #expect(outcome.json?["error"]?["code"] == .string(code))
    }

    @Test func `open makes remote calls unless told otherwise`() throws {
        #expect(try run("open", "app://B/greet?name=a%20b").output == "Hello, a b!\n")
        #expect(try run("open", "app://A/nativeSecret").code == 69)
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

    @Test func `a running host answers like a local one, and loads modules while it runs`() throws {
        try FileManager.default.removeItem(atPath: folder.path + "/ModuleB.so")
        let socket = folder.path + "/s"
        let host = try ProgramProcess(["run", "--plugins", folder.path, "--socket", socket, "--json"])
        #expect(host.line { $0.contains("\"listening\"") } != nil)
        #expect(try ProgramProcess.run("call", "B", "greet", "name=x", "--attach", socket).code == 69)
        try add("ModuleB", as: "late")
        #expect(host.line { $0.contains("\"added\"") && $0.contains("ModuleB") } != nil)
        let call = try ProgramProcess.run("call", "B", "greet", "name=x", "--attach", socket, "--json")
        #expect(call.code == 0 && call.output == "{\"result\":\"Hello, x!\"}\n")
        let service = ["call", "HomeService", "fetchDetail", "key=x", "--service", "--attach", socket, "--json"]
        #expect(try ProgramProcess(service).wait().json?["result"]?["title"] == "Detail of x")
        let refused = try ProgramProcess.run("open", "app://A/nativeSecret", "--attach", socket)
        #expect(refused.code == 69, "\(refused)")
        #expect(try ProgramProcess.run("open", "--local", "app://A/nativeSecret", "--attach", socket).code == 0)
        let list = try ProgramProcess.run("list", "--attach", socket, "--json")
        #expect(list.json?.list?.count == 2)
        host.signal(SIGTERM)
        #expect(try host.wait().code == 0)
    }
}
