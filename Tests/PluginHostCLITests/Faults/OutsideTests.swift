import Foundation
import PluginABI
import Testing

@testable import TestSupport

/// Input from outside (a version that is put back, a configuration, a subscriber, a limit) does not kill the program
/// repeatedly, does not keep it from ending, and does not count as success.
@Suite(.timeLimit(.minutes(30)), .serialized) struct OutsideTests {
    let program: HostProgram

    init() throws { program = try HostProgram() }

    private var file: String { "\(program.plugins)/Bad.so" }

    @Test func `A kept version that kills the program is quarantined the first time, even if another one serves`()
        throws
    {
        let die = "\(program.folder.path)/die"
        var module = CModule(name: "Bad")
        module.code = """
            #include <unistd.h>
            __attribute__((constructor)) static void begin(void) { if (access("\(die)", F_OK) == 0) __builtin_trap(); }
            """
        try module.build(into: program.plugins, as: "Bad.so")
        #expect(try program.run("remove", "Bad").code == 0)
        try CModule(name: "Bad", version: "1.0.1").build(into: program.plugins, as: "Bad.so")
        try program.folder.file("die", "")

        #expect(try program.run("rollback", "Bad").signal != 0)
        for _ in 0..<2 {
            let outcome = try program.run("rollback", "Bad")
            #expect(outcome.signal == 0 && outcome.code != 0, "\(outcome)")
            #expect(outcome.errors.contains("(quarantined)"), "\(outcome.errors)")
            #expect(try program.run("list", "--json").module("Bad.so")?["state"] == "active")
        }
    }

    @Test(arguments: ["exit(0)"] + (isSanitized ? [] : ["_exit(0)"]))
    func `No command succeeds if a module ends the program while it is loaded`(end: String) throws {
        var module = CModule(name: "Leaver")
        module.code = "__attribute__((constructor)) static void begin(void) { \(end); }"
        try module.build(into: program.plugins, as: "Leaver.so")
        let outcome = try program.run("list")
        #expect(outcome.code == 70 && outcome.errors.contains("ended the program by exit, _exit or"), "\(outcome)")
        #expect(outcome.errors.contains("running the opening of"), "\(outcome.errors)")
    }

    @Test func `A configuration that is a pipe without a writer is an error`() throws {
        let pipe = "\(program.folder.path)/config"
        try #require(mkfifo(pipe, 0o600) == 0)
        let outcome = try program.run("list", "--config", pipe)
        #expect(outcome.signal == 0 && outcome.code != 0 && outcome.errors.contains(pipe), "\(outcome)")
    }

    @Test func `A subscriber that hangs in configuration.changed does not keep signals from ending the program`()
        throws
    {
        let noted = "\(program.folder.path)/noted"
        var module = CModule(name: "Hanging")
        module.code = "#include <unistd.h>\n#include <fcntl.h>\n"
        module.events = [
            ("configuration.changed", "", "close(open(\"\(noted)\", O_CREAT | O_WRONLY, 0600)); for (;;) pause();")
        ]
        try module.build(into: program.plugins, as: "Hanging.so")
        let configuration = try program.folder.file("config.json", "{}")
        let host = try program.start("run", "--config", configuration, "--socket", "\(program.folder.path)/s")
        _ = try SocketClient("\(program.folder.path)/s").ask("list")
        try program.folder.file("config.json", #"{"Hanging": {"a": 1}}"#)
        #expect(eventually { access(noted, F_OK) == 0 })
        host.signal(SIGTERM)
        #expect(try host.wait().code == 0)
    }
}
