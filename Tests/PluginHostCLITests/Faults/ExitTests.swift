import Foundation
import PluginABI
import Testing

@testable import TestSupport

/// Actions that end the host by `exit`: the report names them, and the exit code is theirs.
@Suite(.timeLimit(.minutes(30))) struct ExitTests {
    private let program: HostProgram

    init() throws { program = try HostProgram() }

    private func put(_ body: String, code: String = "") throws {
        var module = CModule(name: "Leaver")
        module.code = code
        module.actions = [("leave", body)]
        try module.build(into: program.plugins, as: "leaver.so")
    }

    @Test(
        arguments: [("exit(3)", ", with status 3\n"), ("quick_exit(3)", "quick_exit\n")]
            + (isSanitized ? [] : [("_exit(3)", ", with status 3\n")]))
    func `an action that ends the host is named, with advice, and its exit code is kept`(
        end: String, first: String
    ) throws {
        try put("\(end);")
        let outcome = try program.run("call", "Leaver", "leave")
        #expect(outcome.code == 3 && outcome.signal == 0)
        #expect(outcome.errors.contains("code of a module has ended the program by exit, _exit or quick_exit"))
        #expect(outcome.errors.contains(first), "\(outcome.errors)")
        #expect(outcome.errors.contains("\n  while running Leaver/leave of Leaver 1.0.0 (generation"))
        #expect(outcome.errors.contains("\n  in the code of Leaver 1.0.0 (\(program.plugins)/leaver.so)\n"))
        #expect(outcome.errors.contains("(pluginhost run --isolate Leaver; in other programs"))
    }

    @Test(.disabled(if: isSanitized, "Sanitizers define _exit themselves."), arguments: ["", "../lib/"])
    func `an _exit of a library beside a module is that of the module`(place: String) throws {
        let library = try CFixture.build(
            "#include <unistd.h>\nvoid leave(int status) { _exit(status); for (;;) {} }", ["-Wl,-soname,libleave.so"],
            name: "libleave.so")
        let beside = "\(program.plugins)/\(place)libleave.so"
        try FileManager.default.createDirectory(
            atPath: (beside as NSString).deletingLastPathComponent, withIntermediateDirectories: true)
        try copyFile(library, to: beside)
        var module = CModule(name: "Leaver")
        module.code = "extern void leave(int status);"
        module.actions = [("leave", "leave(3);")]
        let runpath = place.isEmpty ? "$ORIGIN" : "$ORIGIN/../lib"
        try module.build(
            into: program.plugins, as: "leaver.so", [library, "-Wl,-rpath,\(runpath)"])
        let outcome = try program.run("call", "Leaver", "leave")
        #expect(outcome.code == 3 && outcome.signal == 0)
        #expect(outcome.errors.contains("code of a module has ended the program by exit"), "\(outcome.errors)")
        #expect(outcome.errors.contains("\n  in the code of Leaver 1.0.0 (\(program.plugins)/leaver.so)\n"))
    }

    @Test func `a module whose description is on the heap, as those in Swift, is named by its version`() throws {
        var module = CModule(name: "Leaver")
        module.code = """
            const plugin_module *described(void);
            const plugin_module *entry(void) __asm__("plugin_module_entry");
            const plugin_module *entry(void) {
                plugin_module *copy = malloc(sizeof *copy);
                *copy = *described();
                return copy;
            }
            """
        module.actions = [("leave", "exit(3);")]
        try module.build(into: program.plugins, as: "leaver.so", ["-Dplugin_module_entry=described"])
        let outcome = try program.run("call", "Leaver", "leave")
        #expect(outcome.code == 3)
        #expect(
            outcome.errors.contains("\n  in the code of Leaver 1.0.0 (\(program.plugins)/leaver.so)\n"),
            "\(outcome.errors)")
    }

    @Test func `a thread of a module that ends the host is named as well`() throws {
        try put(
            "start(leave, NULL); pause();",
            code: "static void *leave(void *data) { (void)data; exit(4); }")
        let outcome = try program.run("call", "Leaver", "leave")
        #expect(outcome.code == 4)
        #expect(outcome.errors.contains("\n  in the code of Leaver 1.0.0"), "\(outcome.errors)")
    }

    @Test func `a child that an action forks may end, and so may the program`() throws {
        try put(
            """
            pid_t child = fork();
            if (child == 0) exit(5);
            int status = 0;
            waitpid(child, &status, 0);
            reply(call, WEXITSTATUS(status) == 5 ? "five" : "other");
            """, code: "#include <sys/wait.h>")
        let outcome = try program.run("call", "Leaver", "leave")
        #expect(outcome.code == 0 && outcome.output.contains("five"))
        #expect(!outcome.errors.contains("ended the program"), "\(outcome.errors)")
    }

    @Test func `an isolated module that calls exit ends only its call`() throws {
        try put("exit(3);")
        let outcome = try program.run("call", "Leaver", "leave", "--isolate", "Leaver")
        #expect(outcome.code != 3 && outcome.errors.contains("moduleCrashed"), "\(outcome)")
    }
}
