import Foundation
import PluginABI
import PluginHost
import Testing

@testable import PluginHostCLI
@testable import TestSupport

/// Findings of `pluginhost check` state the location of the code.
@Suite(.timeLimit(.minutes(30))) struct LocationTests: Checking {
    private static let tools = ["llvm-symbolizer", "addr2line"].compactMap { Tool($0)?.path }

    /// A module whose action crashes in a function that it calls.
    private var crashing: CModule {
        var module = CModule()
        module.code = """
            #line 100 "/src/shop.c"
            static int __attribute__((noinline)) look_up(const char *text) { return *(volatile const char *)text; }
            #line 200 "/src/shop.c"
            int helper(void) { return 1; }
            """
        module.body = "look_up((const char *)16);"
        return module
    }

    @Test(.disabled(if: tools.isEmpty, "There is no tool."))
    func `A crash and an exported name have file and line`() throws {
        let report = try check(crashing.build(["-g"])).report
        let crash = result("concurrent", of: report)?["findings"]?[0]
        #expect(crash?["message"]?.string?.hasSuffix(". In look_up (/src/shop.c:100).") == true, "\(report)")
        #expect(
            result("replies", of: report)?["summary"]?.string?.hasSuffix(
                ". In look_up (/src/shop.c:100). It is the crash that the check 'concurrent' has found.") == true)
        #expect(crash?["location"]?["file"] == "/src/shop.c" && crash?["location"]?["line"] == 100, "\(report)")
        #expect(crash?["location"]?["function"] == "look_up")
        let exported = result("symbols", of: report)?["findings"]?[0]?["message"]?.string ?? ""
        #expect(exported.hasPrefix("It exports helper (/src/shop.c:200), which can clash"), "\(report)")
    }

    @Test(.disabled(if: tools.isEmpty || isSanitized, "There is no tool."))
    func `A crash of an isolated module has file and line`() throws {
        let report = try check(crashing.build(["-g"]), "--isolate").report
        let crash = result("replies", of: report)?["findings"]?[0]
        #expect(crash?["location"]?["line"] == 100 && crash?["location"]?["function"] == "look_up", "\(report)")
        #expect(crash?["message"]?.string?.contains("/src/shop.c:100") == true)
        #expect(crash?["message"]?.string?.contains("address 0") == false)
        var module = crashing
        module.setUp = "look_up((const char *)16);"
        let start = result("lifecycle", of: try check(module.build(["-g"]), "--isolate").report)?["findings"]?[0]
        #expect(start?["location"]?["line"] == 100, "\(start ?? .null)")
    }

    @Test(.disabled(if: tools.isEmpty || isSanitized, "There is no tool."), arguments: [[], ["--isolate"]])
    func `A crash in a constructor has file and line`(options: [String]) throws {
        var module = CModule()
        module.code = """
            #line 300 "/src/shop.c"
            __attribute__((constructor)) static void begin_shop(void) { *(volatile int *)16 = 1; }
            """
        let arguments = ["check", try module.build(["-g"]), "--json", "--trust"] + options
        let report = try Value(json: program().run(arguments).output)
        let crash = result("description", of: report)?["findings"]?[0]
        #expect(crash?["location"]?["line"] == 300 && crash?["location"]?["function"] == "begin_shop", "\(report)")
    }

    @Test(.disabled(if: tools.isEmpty || isSanitized, "There is no tool."))
    func `A crash in a function of the C library is one of its caller`() throws {
        var module = crashing
        module.body = "memset((void *)16, 1, (size_t)count + 64);"
        let report = try check(module.build(["-g"])).report
        let location = result("replies", of: report)?["findings"]?[0]?["location"]
        #expect(location?["function"] == "action_answer", "\(report)")
    }

    @Test(.disabled(if: tools.isEmpty || isSanitized, "There is no tool."), arguments: ["--seed=1", "--isolate"])
    func `The overflow of the stack has file and line`(option: String) throws {
        var module = CModule()
        module.code = """
            #line 500 "/src/shop.c"
            static int __attribute__((noinline)) descend(volatile int *depth) { volatile int next = *depth + 1; return descend(&next) + next; }
            #line 600 "/src/shop.c"
            static void *run(void *depth) { descend(depth); return 0; }
            """
        module.body = "volatile int depth = 0; run((void *)&depth);"
        let crash = result("concurrent", of: try check(module.build(["-g"]), option).report)?["findings"]?[0]
        #expect(crash?["location"]?["line"] == 500 && crash?["location"]?["function"] == "descend", "\(crash ?? .null)")
        #expect(crash?["advice"]?.string?.contains("end the recursion") == true)
    }

    @Test(.disabled(if: tools.isEmpty || isSanitized, "There is no tool."), arguments: ["--seed=1", "--isolate"])
    func `The call of a null pointer has file and line`(option: String) throws {
        var module = CModule()
        module.code = """
            static void (*volatile none)(void);
            #line 700 "/src/shop.c"
            static void __attribute__((noinline)) jump(void) { none(); none(); }
            """
        module.body = "jump();"
        let crash = result("replies", of: try check(module.build(["-g"]), option).report)?["findings"]?[0]
        #expect(crash?["location"]?["line"] == 700 && crash?["location"]?["function"] == "jump", "\(crash ?? .null)")
    }

    @Test(.disabled(if: tools.isEmpty || isSanitized, "There is no tool."), arguments: ["--seed=1", "--isolate"])
    func `A crash in a hand-over has file and line`(option: String) throws {
        var module = crashing
        module.body = ""
        module.hooks = ["suspend": "look_up((const char *)16);", "resume": ""]
        let crash = result("replacement", of: try check(module.build(["-g"]), option).report)?["findings"]?[0]
        #expect(crash?["location"]?["line"] == 100 && crash?["location"]?["function"] == "look_up", "\(crash ?? .null)")
    }

    @Test(.disabled(if: tools.isEmpty, "There is no tool."))
    func `A finding about an action has the function of the action`() throws {
        var module = CModule()
        module.body = "reply(call, \"first\");"
        let report = try check(module.build(["-g"])).report
        let finding = result("replies", of: report)?["findings"]?[0]
        #expect(
            finding?["action"] == "Good/answer" && finding?["location"]?["function"] == "action_answer", "\(report)")
        #expect(finding?["location"]?["line"]?.int ?? 0 > 0)
    }

    @Test(arguments: tools) func `Each tool finds functions and lines`(tool: String) throws {
        let file = try crashing.build(["-g"])
        let symbolizer = Symbolizer(tool: tool)
        #expect(symbolizer.located(["helper", "nothing"], in: file).first == "helper (/src/shop.c:200)")
        let stripped = try crashing.build(["-s"])
        let location = symbolizer.locations(of: [CodeAddress(file: stripped, offset: 1 << 40)])[0]
        #expect(location.function == nil && location.source == nil)
    }

    @Test func `Without a tool, and with one that fails, a location is an offset`() throws {
        let folder = try TemporaryFolder()
        let failing = try folder.file("fail", "#!/bin/sh\necho nonsense; exit 1\n")
        try FileManager.default.setAttributes([.posixPermissions: 0o755], ofItemAtPath: failing)
        let address = CodeAddress(file: "/modules/libshop.so", offset: 0x10f9)
        for tool in [nil, "/missing/addr2line", failing] {
            let location = Symbolizer(tool: tool).location(ofCrash: [address])
            #expect(location?.description == "libshop.so+0x10f9" && location?.record["offset"] == 0x10f9)
        }
        #expect(Symbolizer(tool: nil).location(ofCrash: []) == nil)
    }

    @Test func `A function without a line precedes those of the interface`() throws {
        let folder = try TemporaryFolder()
        let lines = "trap\n//<compiler-generated>:?\nresolve\n/x/Sources/PluginABI/A.swift:7\nmain\n/x/main.swift:9\n"
        let script = "#!/bin/sh\nprintf '\(lines.replacing("\n", with: "\\n"))'\n"
        let tool = try folder.file("tool", Data(script.utf8), mode: 0o755)
        func location(_ count: UInt64) -> CodeLocation? {
            Symbolizer(tool: tool).location(ofCrash: (0..<count).map { CodeAddress(file: "/x/shop.so", offset: $0) })
        }
        #expect(location(2)?.function == "trap")
        #expect(location(3)?.source?.file == "/x/main.swift")
    }

    @Test func `Lines of the report of a crash are read`() {
        let address = CodeAddress(line: "address 00000000000010f9 /a b/libshop.so")
        #expect(address == CodeAddress(file: "/a b/libshop.so", offset: 0x10f9))
        #expect(CodeAddress(line: "{\"at\":\"address 10 /a\"}") == nil && CodeAddress(line: "address x /a") == nil)
        #expect(CodeAddress(address?.record) == address && CodeAddress(nil) == nil)
    }

    @Test func `Arguments of the actions of objects are taken away, too`() throws {
        var module = CModule()
        module.types = [
            (
                "Pen",
                [
                    .init(
                        name: "draw", parameters: ["text": "string"],
                        body: """
                            static const char *volatile kept;
                            if (kept) { volatile char first = *kept; (void)first; }
                            kept = arguments[0].as.string;
                            reply(call, "");
                            """)
                ]
            )
        ]
        module.actions = [
            (
                "pen",
                """
                plugin_object pen = host->object_create(host, text("Pen"), NULL, NULL);
                plugin_value value = plugin_value_object(pen);
                reply_value(call->token, value);
                host->object_release(host, pen);
                """
            )
        ]
        let arguments = result("arguments", of: try check(module.build()).report)
        let message = arguments?["findings"]?[0]?["message"]?.string ?? ""
        #expect(message.contains("It crashes the process at Pen#draw"), "\(String(describing: arguments))")
    }

    @Test func `a module that reports many addresses costs one look-up of 16`() throws {
        let folder = try TemporaryFolder()
        let log = "\(folder.path)/log"
        _ = try folder.file("tools/addr2line", Data("#!/bin/sh\necho $# >> \(log)\nexit 1\n".utf8), mode: 0o755)
        var module = CModule()
        module.code = "#include <stdio.h>"
        module.body = """
            for (int i = 0; i < 100; i++) dprintf(3, "address 10 /x/%d.so\\naddress %x /x/own.so\\n", i, i);
            abort();
            """
        let file = try module.build(into: folder.path, as: "own.so")
        let outcome = try program().run(
            ["check", file, "--json", "--trust", "--seed", "1"],
            environment: ["PATH": "\(folder.path)/tools:/usr/bin:/bin"])
        #expect(outcome.code == 65 && outcome.output.contains("SIGABRT"), "\(outcome)")
        // There are four arguments besides the addresses.
        let counts = try String(contentsOfFile: log, encoding: .utf8).split(separator: "\n").compactMap { Int($0) }
        #expect(counts.contains(20) && counts.count < 10 && counts.allSatisfy { $0 <= 20 }, "\(counts)")
    }
}
