import Foundation
import PluginABI
import PluginHost
import Testing

@testable import TestSupport

@Suite(.timeLimit(.minutes(30))) struct CheckTests: Checking {
    @Test(arguments: ["ModuleA", "ModuleB", "ModuleC"]) func `the samples pass every check`(module: String) throws {
        let (outcome, report) = try check(built("lib\(module).so"))
        #expect(outcome.code == 0 && report["module"]?.string == module)
        for result in report["checks"]?.list ?? [] { #expect(result["outcome"] == "pass", "\(result)") }
        let symbols = result("symbols", of: report)?["summary"]?.string ?? ""
        if module == "ModuleC" {
            #expect(symbols == "exports only the entry function")
        } else {
            #expect(symbols.hasPrefix("exports the entry function and "), "\(symbols)")
            #expect(symbols.hasSuffix(" Swift names, which hosts keep apart by file"), "\(symbols)")
        }
    }

    @Test func `an action with a rest passes, and is called with parameters that it does not declare`() throws {
        let module = CModule(
            targets: [
                .init(
                    name: "Open",
                    actions: [
                        .init(
                            name: "tell", manifest: "\"rest\": true, \"result\": \"int\", ",
                            parameters: ["text": "string"],
                            body: "reply_int(call->token, arguments[1].count);")
                    ])
            ])
        let report = try check(module.build()).report
        for result in report["checks"]?.list ?? [] { #expect(result["outcome"] == "pass", "\(result)") }
    }

    @Test(arguments: [[], ["--isolate"]])
    func `the timeouts of the configuration hold in a check`(options: [String]) throws {
        let module = CModule(name: "Slow", setUp: "usleep(300000);")
        let folder = try TemporaryFolder()
        let file = try folder.file("host.json", #"{"hookTimeout": 0.05}"#)
        let arguments = ["check", try module.build(), "--trust", "--json", "--no-calls"] + options
        let strict = try program().run(arguments + ["--config", file])
        #expect(strict.code == 65 && strict.output.contains("did not return within 0.05 seconds"), "\(strict)")
        #expect(try program().run(arguments).code == 0)
    }

    @Test func `a configuration that nearly names the module is a warning with a suggestion`() throws {
        let folder = try TemporaryFolder()
        let file = try CModule(name: "Bookmarks").build()
        let misspelt = try folder.file("misspelt.json", #"{"Bookmark": {}, "Elsewhere": {}}"#)
        let report = try check(file, "--no-calls", "--config", misspelt).report
        let finding = result("configuration", of: report)
        #expect(finding?["outcome"] == "warning")
        #expect(finding?.json.contains("names the module “Bookmark”") == true, "\(report.json)")
        #expect(finding?.json.contains("Did you mean “Bookmarks”?") == true)
        #expect(finding?.json.contains("Elsewhere") == false)
        let right = try folder.file("right.json", #"{"Bookmarks": {}, "Bookmark": {}}"#)
        #expect(result("configuration", of: try check(file, "--no-calls", "--config", right).report) == nil)
    }

    @Test func `the output has a line for each check, and the seed with which to repeat them`() throws {
        let file = try CModule().build()
        let outcome = try program().run("check", file, "--trust", "--seed", "77")
        let lines = outcome.output.split(separator: "\n")
        #expect(outcome.code == 0 && lines.count == 16 && lines.last == "seed 77")
        #expect(lines.dropLast().allSatisfy { $0.hasPrefix("pass     ") }, "\(outcome.output)")
        let again = try program().run("check", file, "--trust", "--seed", "77")
        #expect(again.output == outcome.output)
    }

    @Test func `a failure is described in words, with its own exit code`() throws {
        var module = CModule()
        module.actions = [("silent", "")]
        let outcome = try program().run(["check", module.build(), "--trust"])
        #expect(outcome.code == 65 && outcome.output.contains("FAILURE  replies"))
        #expect(outcome.errors.contains("fails 1 of 15 checks. Run the check again with '--seed "))
    }

    @Test func `Actions whose replies differ from call to call are named and not compared`() throws {
        let next = "static _Atomic int calls; char text[16]; snprintf(text, 16, \"%d\", calls++); reply(call, text);"
        let outcome = try program().run(["check", CModule(actions: [("next", next)]).build(), "--trust"])
        #expect(outcome.code == 0 && outcome.output.contains("pass     concurrent"), "\(outcome)")
        #expect(outcome.output.contains("differ from call to call: Good/next.\n"), "\(outcome)")
    }

    @Test func `no action is performed with '--no-calls'`() throws {
        let folder = try TemporaryFolder()
        var module = CModule()
        module.body = "note(\"\(folder.path)/called\", \"x\\n\");"
        let report = try check(module.build(), "--no-calls").report
        #expect(result("replies", of: report)?["outcome"] == "skipped" && report["passed"] == true)
        #expect(!FileManager.default.fileExists(atPath: "\(folder.path)/called"))
        _ = try check(module.build())
        #expect(FileManager.default.fileExists(atPath: "\(folder.path)/called"))
    }

    @Test func `a module that requires others is checked with them`() throws {
        let folder = try TemporaryFolder()
        var module = CModule()
        module.moreManifest = "\"requires\": [{\"module\": \"Helper\"}], "
        let file = try folder.copy(module.build(), as: "good.so")
        let alone = try check(file)
        #expect(alone.outcome.code == 65 && alone.outcome.output.contains("--with"))
        let helper = try CModule(name: "Helper").build()
        #expect(try check(file, "--with", helper).outcome.code == 0)
    }

    @Test func `an unusable file for '--with' is named`() throws {
        let folder = try TemporaryFolder()
        let good = try folder.copy(CModule().build(), as: "good.so")
        func run(_ other: String) throws -> ProgramProcess.Outcome {
            try program().run("check", good, "--trust", "--with", other)
        }
        let missing = try run("\(folder.path)/missing.so")
        #expect(missing.code == 66 && missing.errors.contains("--with \(folder.path)/missing.so"))
        for other in [folder.path, try folder.file("text.so", Data("text".utf8)), good] {
            let outcome = try run(other)
            #expect(outcome.code == 65 && outcome.errors.contains("--with \(other)"), "\(outcome)")
        }
        var failing = CModule(name: "Failing")
        failing.activate = "return 7;"
        let other = try folder.copy(failing.build(), as: "failing.so")
        let outcome = try run(other)
        #expect(outcome.code == 65 && outcome.output.contains("--with \(other)"), "\(outcome)")
    }

    @Test func `a module that does not start fails one check, and is not started again`() throws {
        var module = CModule()
        module.activate = "return 7;"
        let (outcome, report) = try check(module.build())
        let outcomes = (report["checks"]?.list ?? []).map { $0["outcome"]?.string }
        #expect(outcome.code == 65 && outcomes.count { $0 == "failure" } == 1, "\(report)")
        #expect(outcomes.count { $0 == "skipped" } == 8, "\(report)")
        let lifecycle = result("lifecycle", of: report)
        #expect(lifecycle?["summary"] == lifecycle?["findings"]?[0]?["message"])
        let told = try program().run(["check", module.build(), "--trust"])
        #expect(told.output.contains("skipped  replies      not tried: it does not start"))
        #expect(told.errors.contains("fails 1 of 15 checks.") && !told.errors.contains("--seed"))
    }

    @Test func `a check reports all that it finds, and how far it got`() throws {
        var module = CModule()
        module.actions = [("silent", ""), ("mute", "refuse(call, \"\");"), ("endless", "for (;;) usleep(1000);")]
        let outcome = try program().run(["check", module.build(), "--trust", "--timeout", "3"])
        #expect(outcome.output.contains("The check did not end within 3 s, its deadline, after "), "\(outcome)")
        #expect(outcome.output.contains("; the last to begin was Good/endless with"), "\(outcome)")
        module.actions.removeLast()
        let both = try program().run(["check", module.build(), "--trust"])
        #expect(both.output.contains("Good/silent") && both.output.contains("Good/mute"), "\(both)")
    }

    @Test func `weak symbols are not reported`() throws {
        var module = CModule()
        module.code = """
            __attribute__((weak)) char *setlocale(int category, const char *locale) { return (char *)locale + category; }
            """
        #expect(try result("symbols", of: check(module.build()).report)?["outcome"] == "pass")
    }

    @Test(arguments: [SIGINT, SIGTERM, SIGKILL])
    func `an interrupted check leaves nothing behind`(signal: Int32) throws {
        let program = try program()
        var module = CModule()
        module.body = """
            char line[32];
            snprintf(line, sizeof line, "%d", (int)getpid());
            note("\(program.folder.path)/process", line);
            for (;;) pause();
            """
        let running = try program.start("check", module.build(), "--trust", "--json")
        // The file is there before the number is in it.
        let file = "\(program.folder.path)/process"
        func noted() -> String { (try? String(contentsOfFile: file, encoding: .utf8)) ?? "" }
        #expect(eventually { !noted().isEmpty })
        running.signal(signal)
        #expect(try running.wait().signal == signal)
        let process = noted()
        // A process that has ended but has not been reaped has no command line.
        #expect(eventually { (FileManager.default.contents(atPath: "/proc/\(process)/cmdline") ?? Data()).isEmpty })
        // It may have been between two of its children.
        #expect(
            eventually {
                let rest = (try? FileManager.default.contentsOfDirectory(atPath: program.folder.path)) ?? []
                return !rest.contains { $0.hasPrefix("pluginhost-check") }
            })
    }

    @Test func `other modules in the folder are ignored`() throws {
        let folder = try TemporaryFolder()
        var crashing = CModule(name: "Crashing")
        crashing.entry = "abort();"
        try folder.copy(crashing.build(), as: "crashing.so")
        let file = try folder.copy(CModule().build(), as: "good.so")
        #expect(try check(file).outcome.code == 0)
    }

    @Test(arguments: [".//good.so", "./../plugins/good.so"])
    func `a file is found by any form of its path`(path: String) throws {
        let program = try HostProgram()
        try program.folder.copy(CModule().build(), as: "plugins/good.so")
        #expect(try check("\(program.plugins)/\(path)").outcome.code == 0)
    }

    @Test func `a module whose manifest exceeds the length of an argument passes every check`() throws {
        var module = CModule()
        module.moreManifest = "\"summary\": \"\(String(repeating: "long ", count: 40_000))\", "
        let (outcome, report) = try check(module.build())
        #expect(outcome.code == 0, "\(outcome)")
        for result in report["checks"]?.list ?? [] { #expect(result["outcome"] == "pass", "\(result)") }
    }

    @Test func `a missing file and an invalid seed have different exit codes`() throws {
        let folder = try TemporaryFolder()
        symlink("/nonexistent.so", "\(folder.path)/link.so")
        #expect(try program().run("check", "/nonexistent.so").code == 66)
        #expect(try program().run("check", "\(folder.path)/link.so").code == 66)
        #expect(try program().run("check", "").code == 64)
        #expect(try program().run("check", "x.so", "--seed", "x").code == 64)
    }
}
