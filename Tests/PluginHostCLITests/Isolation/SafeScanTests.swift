import Foundation
import Testing

@testable import TestSupport

/// Safe scans by the program `pluginhost`.
@Suite struct SafeScanTests {
    @Test func `A file that crashes is reported, and no process or descriptor is left`() throws {
        let program = try HostProgram()
        let witness = "\(program.folder.path)/witness"
        func module(_ name: String, _ constructor: String) -> CModule {
            CModule(name: name, code: "__attribute__((constructor)) static void begin(void) { \(constructor) }")
        }
        let forking = """
            pid_t child = fork();
            if (child == 0) { close(1); close(2); for (;;) pause(); }
            char text[20]; sprintf(text, "%d\\n", (int)child);
            note("\(witness)", text);
            abort();
            """
        try module("Forks", forking).build(into: program.plugins, as: "forks.so")
        try CModule().build(into: program.plugins, as: "good.so")
        let process = try program.start("run", "--safe-scan", "--socket", "\(program.folder.path)/s")
        #expect(process.line { $0.contains("forks.so was not opened: a constructor crashed (signal 6") } != nil)
        #expect(process.line { $0.contains("Listening") } != nil)
        func descriptors() throws -> Int {
            try FileManager.default.contentsOfDirectory(atPath: "/proc/\(process.id)/fd").count
        }
        func add(_ number: Int) throws {
            try module("New\(number)", "raise(SIGSEGV);").build(into: program.plugins, as: "new\(number).so")
            #expect(process.line { $0.contains("new\(number).so was not opened") } != nil)
        }
        try add(0)  // Some descriptors are opened when they are first needed.
        let before = try descriptors()
        for number in 1...3 { try add(number) }
        #expect(try eventually { try descriptors() <= before })
        let lines = try String(contentsOfFile: witness, encoding: .utf8).split(separator: "\n")
        let forked = lines.compactMap { pid_t($0) }
        #expect(forked.count == 2)
        #expect(eventually { forked.allSatisfy { kill($0, 0) != 0 } })
        let tasks = try FileManager.default.contentsOfDirectory(atPath: "/proc/\(process.id)/task")
        for task in tasks {
            let children = try? String(contentsOfFile: "/proc/\(process.id)/task/\(task)/children", encoding: .utf8)
            #expect(children ?? "" == "")
        }
        process.signal(SIGTERM)
        #expect(try process.wait().code == 0)
    }
}
