import Foundation
import PluginABI
import PluginHost
import Testing

@testable import TestSupport

/// Scan processes open files before the host opens them.
@Suite(.disabled(if: modulesAreIsolated, "Isolated modules are not scanned."))
struct SafeScanTests {
    /// C code that adds the number of its process to a file.
    private func witness(_ file: String) -> String {
        "char text[20]; sprintf(text, \"%d\\n\", (int)getpid()); note(\"\(file)\", text);"
    }

    /// A module whose constructor runs these statements.
    private func module(_ name: String, constructor: String) -> CModule {
        CModule(name: name, code: "__attribute__((constructor)) static void begin(void) { \(constructor) }")
    }

    private func host(
        _ configure: (inout PluginHost.Configuration, TemporaryFolder) throws -> Void
    ) throws -> TestHost {
        try TestHost { configuration, folder in
            configuration.safeScan = true
            configuration.watches = false
            configuration.isolation.workerPath = built("pluginhost-worker")
            try configure(&configuration, folder)
        }
    }

    /// The processes that have added their number to a file.
    private func processes(_ file: String) throws -> [pid_t] {
        try String(contentsOfFile: file, encoding: .utf8).split(separator: "\n").map { try #require(pid_t($0)) }
    }

    @Test func `Files that crash, exit or hang are named, and all others serve`() throws {
        let host = try host { configuration, folder in
            configuration.scanTimeout = .seconds(1)
            let good = try Data(contentsOf: URL(filePath: CModule(name: "Mod00").build()))
            for number in 10..<74 {
                var copy = good
                while let place = copy.range(of: Data("Mod00".utf8)) {
                    copy.replaceSubrange(place, with: Data("Mod\(number)".utf8))
                }
                try folder.file("plugins/\(number).so", copy)
            }
            let bad = [
                "11-abort": module("Bad", constructor: "\(witness("\(folder.path)/witness")) abort();"),
                "20-fault": module("Bad", constructor: "raise(SIGSEGV);"),
                "30-trap": module("Bad", constructor: "fprintf(stderr, \"No\\nway\\n\"); __builtin_trap();"),
                "40-exit": module("Bad", constructor: "exit(3);"),
                "50-hang": module("Bad", constructor: "for (;;) pause();"),
                "60-entry": CModule(name: "Bad", entry: "abort();"),
            ]
            for (name, module) in bad { try module.build(into: "\(folder.path)/plugins", as: "\(name).so") }
        }
        try host.host.start()
        #expect(host.host.modules.count { $0.state == .active } == 64)
        #expect(host.answer("Mod10") == "yes")
        #expect(host.answer("Mod73") == "yes")
        // Sanitizers turn some signals into exit codes, and some exit codes into others.
        let fault = isSanitized ? "exited" : "a constructor crashed (signal 11, Segmentation fault)"
        let reasons = [
            ("11-abort", PluginError.Code.moduleCrashed, "a constructor crashed (signal 6, Aborted)"),
            ("20-fault", .moduleCrashed, fault),
            ("30-trap", .moduleCrashed, "Its last words: “way”."),
            ("40-exit", .moduleCrashed, isSanitized ? "a constructor exited" : "a constructor exited with code 3"),
            ("50-hang", .deadlineExceeded, "a constructor did not return within 1.0 seconds"),
            ("60-entry", .moduleCrashed, "its entry function crashed (signal 6, Aborted)"),
        ]
        for (name, code, reason) in reasons {
            let error = try #require(host.status("\(name).so")?.error)
            #expect(error.code == code)
            #expect(error.message.contains("\(name).so was not opened: "))
            #expect(error.message.contains(reason), "\(error)")
        }
        // Scanned once with other files, and once alone.
        let processes = try processes("\(host.folder.path)/witness")
        #expect(processes.count == 2)
        #expect(!processes.contains(getpid()))
        #expect(processes.allSatisfy { kill($0, 0) != 0 })
    }

    @Test func `A file that appears or changes while the host runs is scanned`() throws {
        let good = try CModule().build()
        let host = try host { configuration, folder in
            configuration.watches = true
            try module("Witness", constructor: witness("\(folder.path)/witness")).build(
                into: "\(folder.path)/plugins", as: "witness.so")
        }
        try host.start()
        // The constructor runs in the scan process, and then in the host.
        let processes = try processes("\(host.folder.path)/witness")
        #expect(processes.count == 2)
        #expect(processes.first != getpid())
        #expect(processes.last == getpid())
        let scans = "\(host.folder.path)/scans"
        let crash = try module("Bad", constructor: "\(witness(scans)) abort();").build()
        let bad = try Data(contentsOf: URL(filePath: crash))
        try host.put(bad, "new.so")
        #expect(eventually { host.status("new.so")?.error?.code == .moduleCrashed })
        // A change of another file does not cause this file to be scanned again.
        try host.put(Data(contentsOf: URL(filePath: good)), "good.so")
        #expect(eventually { host.answer() == "yes" })
        #expect(try self.processes(scans).count == 1)
        try host.put(bad, "good.so")
        #expect(eventually { host.status("good.so")?.error?.code == .moduleCrashed })
        #expect(host.answer() == "yes")
        try host.put(Data(contentsOf: URL(filePath: CModule(name: "Mended").build())), "new.so")
        #expect(eventually { host.answer("Mended") == "yes" })
    }

    @Test func `A file is not refused because of one that was opened before it in the same process`() throws {
        let host = try host { _, folder in
            let plugins = "\(folder.path)/plugins"
            let isScanned = "getppid() == \(getpid()) /* \(folder.path) */"
            let late = "static void *die(void *data) { usleep(20000); abort(); return data; }"
            var guilty = module("Guilty", constructor: "if (\(isScanned)) start(die, NULL);")
            guilty.code = "\(late)\n\(guilty.code)"
            try guilty.build(into: plugins, as: "a.so")
            try module("Slow", constructor: "if (\(isScanned)) usleep(200000);").build(into: plugins, as: "b.so")
        }
        try host.host.start()
        #expect(host.states == ["a.so": "active", "b.so": "active"])
    }

    @Test func `A file that the dynamic linker refuses has the same error as without a scan`() throws {
        let missing = try CFixture.build(
            "void nowhere(void); void f(void) { nowhere(); } \(CFixture.entry)", ["-Wl,-z,now"])
        let noEntry = try CFixture.build("int plugin_module_entr(void) { return 0; }")
        var errors: [[PluginError?]] = []
        for isScanned in [true, false] {
            let host = try host { configuration, folder in
                configuration.safeScan = isScanned
                try folder.copy(missing, as: "plugins/missing.so")
                try folder.copy(noEntry, as: "plugins/no.so")
            }
            try host.host.start()
            errors.append(
                ["missing.so", "no.so"].map { name in
                    let error = host.status(name)?.error
                    return error.map { PluginError($0.code, $0.message.replacing(host.folder.path, with: "")) }
                })
        }
        #expect(errors[0] == errors[1])
        #expect(errors[0][0]?.code == .openFailed)
        #expect(errors[0][1]?.code == .invalidFile)
    }

    // MARK: - Programs that do not do what they should

    /// A program in place of `pluginhost-worker`; `body` sees the memory as `scan`.
    private func program(_ body: String) throws -> String {
        let wire = "\(repository)/Sources/CPluginWire"
        return try CFixture.program(
            """
            #include "plugin_scan.h"
            #include <string.h>
            #include <unistd.h>
            int main(int count, char **arguments) {
                plugin_scan *scan = plugin_scan_map(PLUGIN_SCAN_MEMORY);
                (void)count; (void)arguments;
                \(body)
                return 0;
            }
            """,
            [
                "-I", "\(wire)/include", "\(wire)/scan.c", "\(wire)/values.c", "\(wire)/messages.c",
                "\(wire)/channels.c", "\(wire)/rooms.c",
                "-pthread",
            ])
    }

    @Test(
        arguments: [
            ("for (uint32_t file = 0; file < 64; file++) plugin_scan_set_step(scan, file, PLUGIN_SCAN_PASSED);", nil),
            ("memset(scan, 0xEE, 4000);", .openFailed),
            ("memset(scan, 0xEE, 5000); plugin_scan_set_step(scan, 0, PLUGIN_SCAN_REFUSED);", .openFailed),
            ("return 70;", .openFailed),
            ("for (uint32_t step = 0;; step++) plugin_scan_set_step(scan, 0, 1 + step % 2);", .deadlineExceeded),
        ] as [(String, PluginError.Code?)])
    func `A program that only pretends to scan does the host no harm`(
        _ body: String, _ code: PluginError.Code?
    ) throws {
        let good = try CModule().build()
        let program = try program(body)
        let host = try host { configuration, folder in
            try folder.copy(good, as: "plugins/good.so")
            if code == .deadlineExceeded { configuration.hookTimeout = .milliseconds(200) }
            configuration.isolation.workerPath = program
        }
        try host.host.start()
        #expect(host.status("good.so")?.error?.code == code)
        #expect(host.answer() == (code == nil ? "yes" : nil))
    }

    @Test func `Without a program that scans, no file is opened, and the host says so`() throws {
        let good = try CModule().build()
        let host = try host { configuration, folder in
            try folder.copy(good, as: "plugins/a.so")
            try folder.copy(good, as: "plugins/b.so")
            configuration.isolation.workerPath = "\(folder.path)/nothing"
        }
        try host.host.start()
        #expect(host.states == ["a.so": "failed", "b.so": "failed"])
        #expect(host.status("a.so")?.error?.message.contains("there is no program") == true)
        #expect(host.host.problems.count == 1)
        #expect(host.host.problems.first?.message.contains("New files are not opened") == true)
    }
}
