import Foundation
import PluginABI
import Testing

@testable import TestSupport

/// `pluginhost check --isolate`.
@Suite(.timeLimit(.minutes(30)))
struct IsolatedCheckTests: Checking {
    @Test(
        .disabled(if: isSanitized, "The samples need functions of the sanitizer, which the worker does not export."),
        arguments: ["ModuleA", "ModuleB", "ModuleC", "Visits"])
    func `A sample has the same results in the process and isolated`(module: String) throws {
        func check(_ options: String...) throws -> ProgramProcess.Outcome {
            try program().run(["check", built("lib\(module).so"), "--trust", "--seed", "1"] + options)
        }
        let here = try check()
        let elsewhere = try check("--isolate")
        #expect(here.output.contains("pass     objects"))
        #expect(elsewhere.output == here.output)
        #expect(elsewhere.code == here.code)
    }

    @Test func `A crash is a finding that names the call and the last words`() throws {
        let module = CModule(actions: [("crash", "fprintf(stderr, \"out of paper\\n\"); abort();")])
        let (outcome, report) = try check(module.build(), "--isolate", "--timeout", "10")
        #expect(outcome.code == 65)
        let finding = result("concurrent", of: report)?["findings"]?[0]?["message"]?.string ?? ""
        #expect(finding.contains("It crashes the process at Good/"), "\(report)")
        #expect(finding.contains("last words: “out of paper”"), "\(report)")
        #expect(result("lifecycle", of: report)?["outcome"] == "pass")
    }

    @Test func `A module that ends its process is told never to call exit`() throws {
        let module = CModule(actions: [("leave", "exit(0);")])
        let (outcome, report) = try check(module.build(), "--isolate", "--timeout", "10")
        #expect(outcome.code == 65)
        for check in ["concurrent", "replies", "replacement"] {
            let finding = result(check, of: report)?["findings"]?[0]
            #expect(finding?["advice"] == "Never call exit.", "\(report)")
            #expect(finding?["message"]?.string?.contains("ended with the exit code 0.") == true, "\(report)")
        }
    }

    @Test func `The module really runs in a process of its own`() throws {
        let isWorker = """
            char name[32], path[64] = {0};
            snprintf(path, sizeof path, "/proc/%d/comm", (int)getpid());
            FILE *file = fopen(path, "r");
            if (!fgets(name, sizeof name, file) || strncmp(name, "pluginhost-work", 15) != 0) return 1;
            """
        let file = try CModule(activate: isWorker).build()
        #expect(try check(file, "--isolate", "--no-calls").0.code == 0)
        #expect(try check(file, "--no-calls").0.code != 0)
    }

    @Test func `A module that asks for permissions passes with the rule that the finding contains`() throws {
        let folder = try TemporaryFolder()
        let data = try folder.file("data", "1")
        var module = CModule(
            moreManifest: "\"requires\": [], \"permissions\": [{\"read\": \"\(data)\", \"reason\": \"for words\"}],",
            activate: "if (access(\"\(data)\", R_OK) != 0 || !fopen(\"\(data)\", \"r\")) return 1;")
        let file = try module.build()
        let (refused, report) = try check(file, "--isolate", "--no-calls")
        #expect(refused.code == 65)
        let finding = result("lifecycle", of: report)?["findings"]?[0]?["message"]?.string ?? ""
        #expect(finding.contains("to read \(data) (for words)"), "\(report)")
        #expect(finding.contains("'--config'"))
        let end = try #require(finding.range(of: "} To check it"))
        let start = try #require(finding.range(of: "{"))
        let rule = finding[start.lowerBound..<end.lowerBound] + "}"
        let configuration = try folder.file("host.json", "{\"isolation\": [\(rule)]}")
        let (outcome, granted) = try check(file, "--isolate", "--no-calls", "--config", configuration)
        #expect(outcome.code == 0, "\(granted)")
        #expect(result("lifecycle", of: granted)?["outcome"] == "pass")
        module.moreManifest = "\"isolation\": \"required\","
        let here = try check(module.build(), "--no-calls", "--config", configuration).report
        let advice = result("lifecycle", of: here)?["findings"]?[0]?["message"]?.string ?? ""
        #expect(advice.hasSuffix("To check it, pass '--isolate'."), "\(here)")
    }
}
