import Foundation
import PluginABI
import PluginHost
import Testing

@testable import TestSupport

/// Isolated modules while a constructor in this process keeps the dynamic linker from opening libraries.
@Suite(.disabled(if: modulesAreIsolated, "The constructor must run in this process."))
struct HangingConstructorTests {
    @Test func `Isolated modules start, and start again after a crash, while a constructor hangs`() async {
        // The constructor keeps all hosts in its process from opening libraries.
        await #expect(processExitsWith: .success) {
            let other = try TestHost { configuration, _ in configuration.hookTimeout = .milliseconds(300) }
            defer { _ = try? other.folder.file("gate") }
            let waiting = "while (access(\"\(other.folder.path)/gate\", F_OK) != 0) usleep(1000);"
            let hanging = CModule(
                name: "Hanging", code: "__attribute__((constructor)) static void begin(void) { \(waiting) }")
            let host = try TestHost { configuration, _ in
                configuration.isolation.modules = .all
                configuration.isolation.restartPauses = [.zero]
            }
            // Has a library beside it, whose name must be free in this process.
            let built = try CFixture.build("int help = 1;", ["-Wl,-soname,libhelp.so"], name: "libhelp.so")
            let library = try host.folder.copy(built, as: "plugins/libhelp.so")
            let flags = ["-Wl,--no-as-needed", library, "-Wl,-rpath,$ORIGIN"]
            try crashing.build(into: host.plugins, as: "bad.so", flags)
            try host.start()
            try #require(host.answer("Bad") == "yes")
            let (new, after) = (try CModule(name: "New").build(), try CModule(name: "After").build())
            try hanging.build(into: other.plugins, as: "a.so")
            try other.start()
            try #require(other.status("a.so")?.error?.code == .deadlineExceeded)

            try #require(host.code("Bad", "abort") == .moduleCrashed)
            try #require(eventually { host.answer("Bad") == "yes" })
            try #require(host.status("bad.so")?.restarts == 1)
            try host.put(Data(contentsOf: URL(filePath: new)), "new.so")
            try #require(eventually { host.answer("New") == "yes" })

            try other.put(Data(contentsOf: URL(filePath: after)), "b.so")
            try #require(eventually { other.status("b.so")?.error?.code == .openFailed })
            try other.folder.file("gate")
            try #require(eventually { other.answer("After") == "yes" })
        }
    }
}
