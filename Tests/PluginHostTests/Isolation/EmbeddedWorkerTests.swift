import CPluginHost
import Foundation
import PluginABI
import PluginHost
import Testing

@testable import TestSupport

/// A program that is installed without `pluginhost-worker`, and is itself the worker of its isolated modules.
@Suite struct EmbeddedWorkerTests {
    private func outcome(
        of module: CModule, _ flags: [String] = [], _ arguments: [String] = ["--isolate"]
    ) throws -> ProgramProcess.Outcome {
        let folder = try TemporaryFolder()
        let program = "\(folder.path)/program"
        // A program cannot be started while any process has it open for writing. If this process made the copy,
        // programs that other tests start meanwhile could inherit the open file.
        let copy = try ProgramProcess([built("LinkedProgram"), program], program: "/bin/cp").wait()
        try #require(copy.code == 0, "\(copy.errors)")
        _ = try folder.folder("plugins")
        try folder.copy(module.build(flags), as: "plugins/libGood.so")
        return try ProgramProcess(arguments + ["--plugins", "\(folder.path)/plugins"], program: program).wait()
    }

    @Test func `It runs them in a sandbox, and ends with them`() throws {
        let isReached = "open(\"/etc/passwd\", O_RDONLY) >= 0"
        let isWorker = "strcmp(name, \"pluginhost-work\") == 0"
        let module = CModule(
            body: """
                char name[16];
                prctl(PR_GET_NAME, name);
                if (\(isReached) || !\(isWorker)) return reply(call, name);
                """, code: "#include <sys/prctl.h>")
        let outcome = try outcome(of: module)
        #expect(outcome.code == 0, "\(outcome.errors)")
        #expect(outcome.output.contains("isolated: Good\nanswer of Good: yes\n"), "\(outcome.output)")
        // Modules that are linked into the program stay in it.
        #expect(outcome.output.contains("answer: linked in"))
    }

    @Test func `A module of another toolchain is refused as in the process of the host`() throws {
        let library = try #require(plugin_host_loaded_library("libswiftCore.so").map { String(cString: $0) })
        let runtime = (library as NSString).deletingLastPathComponent
        let flags = ["-L", runtime, "-Wl,--no-as-needed", "-lswiftCore", "-Wl,-rpath,\(runtime)"]
        let outcome = try outcome(of: CModule(toolchain: "TEXT(\"swift 5.9\")"), flags)
        #expect(outcome.output.contains("error: incompatible"), "\(outcome.output)")
        #expect(outcome.output.contains("install the program pluginhost-worker"))
    }

    @Test func `A process that was not started by a host ends`() throws {
        let outcome = try ProgramProcess(
            ["-c", "exec -a pluginhost-worker '\(built("LinkedProgram"))' /nowhere.so 0"], program: "/bin/bash"
        ).wait()
        #expect(outcome.code == 0 && outcome.output.isEmpty)
    }
}
