import Foundation
import Testing

@testable import TestSupport

/// A program with the linked module Linked 1.0.0, found by its record.
@Suite(.timeLimit(.minutes(30))) struct LinkedModulesTests {
    private let program: HostProgram

    init() throws { program = try HostProgram("LinkedProgram") }

    /// The lines that the program prints.
    private func lines(_ arguments: String...) throws -> [String] {
        let outcome = try program.run(arguments)
        #expect(outcome.signal == 0 && outcome.code == 0, "\(outcome.errors)")
        return outcome.output.split(separator: "\n").map(String.init)
    }

    @Test func `A linked module is available from the start, and torn down at the end`() throws {
        let lines = try lines()
        #expect(lines.contains("module: (linked) Linked 1.0.0 active"))
        #expect(lines.suffix(4).dropLast() == ["answer: linked in", "route: linked in", "service: linked in"])
        #expect(lines.first == "log: Linked set up" && lines.last == "log: Linked torn down")
    }

    @Test func `Of two linked modules with one name, the second is refused, and the error names both`() throws {
        let lines = try lines()
        #expect(lines.contains("module: (linked) number 2 - failed"))
        let error = try #require(lines.first { $0.hasPrefix("error: conflict") })
        #expect(error.contains("Linked") && error.contains("1.0.0") && error.contains("3.0.0"))
    }

    @Test(arguments: [("0.9.0", false), ("1.0.0", false), ("1.0.1", true)])
    func `Of a linked module and a file of the same module, the higher version serves`(
        version: String, fileServes: Bool
    ) throws {
        try CModule(name: "Linked", version: version).build(into: program.plugins, as: "!.so")
        let lines = try lines()
        #expect(lines.contains("answer: \(fileServes ? "yes" : "linked in")"))
        #expect(lines.contains("module: (linked) Linked 1.0.0 \(fileServes ? "superseded" : "active")"))
        #expect(lines.contains("module: !.so \(version) \(fileServes ? "active" : "superseded")"))
    }

    @Test func `A linked module takes precedence over a file for its targets, whatever its level and name`() throws {
        try CModule(name: "A", target: "Linked", moreManifest: "\"level\": \"basic\", ")
            .build(into: program.plugins, as: "a.so")
        let lines = try lines()
        #expect(lines.contains("answer: linked in") && lines.contains("module: a.so 1.0.0 failed"))
        #expect(lines.contains { $0.hasPrefix("error: conflict A (") && $0.contains("Linked ((linked) Linked)") })
    }

    @Test(arguments: ["Linked", "Other"])
    func `A registered module takes precedence over a linked one for its name and targets`(name: String) throws {
        let lines = try lines("--register", name)
        #expect(lines.contains("answer: the program") && lines.contains("route: nobody"))
        #expect(lines.contains("module: (linked) Linked 1.0.0 failed"))
        #expect(lines.contains { $0.hasPrefix("error: conflict Linked ((linked) Linked)") && $0.contains("(program)") })
    }

    @Test func `Of several hosts, the first one has the linked modules until its end`() throws {
        let lines = try lines("--again").filter { $0.hasPrefix("another: ") }
        let refused = lines.filter { $0.hasPrefix("another: Another host of this program already uses the modules") }
        #expect(lines.count == 4 && refused.count == 3 && lines[2] == "another: linked in")
    }

    @Test func `A host uses linked modules only if it is configured to`() throws {
        #expect(try lines("--unlinked") == ["answer: nobody", "route: nobody", "service: nobody"])
    }

    // MARK: In libraries

    /// A library with a module that exports its entry function, like a library in a plugins folder.
    ///
    /// - Parameter record: How the record is made.
    private func library(_ name: String, record: String = "PLUGIN_MODULE_RECORD(plugin_module_entry);") throws -> String
    {
        let module = CModule(name: name, answer: "\(name) answers")
        return try CFixture.build("\(module.source)\n\(record)", name: "lib\(name).so")
    }

    /// A record without a local name for the entry function, as the macro once made it.
    private let oldRecord = """
        __attribute__((used, section(PLUGIN_MODULE_SECTION)))
        static const plugin_module_entry_function record = plugin_module_entry;
        """

    /// The program, linked with the given libraries.
    private func linking(_ libraries: [String]) throws -> (program: HostProgram, folder: TemporaryFolder) {
        let folder = try TemporaryFolder()
        // SwiftPM renames the `main` of programs, so that tests can contain them.
        var arguments = ["-Xlinker", "--defsym=main=LinkedProgram_main", "-Xlinker", "--no-as-needed"]
        arguments += ["@\(built("LinkedProgram.product"))/Objects.LinkFileList", "-o", "\(folder.path)/program"]
        arguments += libraries
        if dlsym(nil, "__asan_init") != nil { arguments.append("-sanitize=address") }
        if dlsym(nil, "__tsan_init") != nil { arguments.append("-sanitize=thread") }
        try #require(Tool("swiftc")).run(arguments)
        return (try HostProgram("\(folder.path)/program"), folder)
    }

    private func lines(
        of program: HostProgram, _ arguments: String..., preloading libraries: [String] = []
    ) throws -> [String] {
        // The library of a sanitizer insists on being the first otherwise.
        let options = ProcessInfo.processInfo.environment["ASAN_OPTIONS"].map { "\($0):" } ?? ""
        let environment = [
            "LD_PRELOAD": libraries.joined(separator: ":"), "ASAN_OPTIONS": options + "verify_asan_link_order=0",
        ]
        let outcome = try program.run(arguments, environment: libraries.isEmpty ? [:] : environment)
        #expect(outcome.signal == 0 && outcome.code == 0, "\(outcome.errors)")
        return outcome.output.split(separator: "\n").map(String.init)
    }

    @Test func `Modules in two libraries that a program is linked with both serve, each with its own code`()
        throws
    {
        let (program, folder) = try linking([library("One"), library("Two")])
        let lines = try lines(of: program)
        for name in ["One", "Two"] {
            #expect(lines.contains("module: (linked) \(name) 1.0.0 active"), "\(lines)")
            #expect(lines.contains("answer of \(name): \(name) answers"))
        }
        #expect(lines.contains("answer: linked in"))
        withExtendedLifetime(folder) {}
    }

    @Test func `A module in a preloaded library serves`() throws {
        let lines = try lines(of: program, preloading: [library("Three")])
        #expect(lines.contains("module: (linked) Three 1.0.0 active") && lines.contains("answer: linked in"))
        #expect(lines.contains("answer of Three: Three answers"))
    }

    @Test func `A record that leads to code of another library is an error that names its own`() throws {
        let (first, second) = (try library("First"), try library("Second", record: oldRecord))
        let lines = try lines(of: program, preloading: [first, second])
        #expect(lines.contains("answer of First: First answers"))
        let error = try #require(lines.first { $0.hasPrefix("error: invalidDescription A record") })
        #expect(error.contains(second) && error.contains("leads to code of another file"))
        #expect(lines.contains { $0.hasPrefix("module: ") && $0.hasSuffix("libSecond.so - failed") })
    }

    @Test func `Of two modules with one name in a program and its library the error names the library`() throws {
        let library = try library("Linked")
        let lines = try lines(of: program, preloading: [library])
        #expect(lines.contains("answer: linked in"))
        #expect(lines.contains { $0.hasPrefix("error: conflict") && $0.contains("1.0.0 in \(library)") })
    }

    @Test func `A library without section headers is a line in the log`() throws {
        var bytes = try Data(contentsOf: URL(filePath: library("Stripped")))
        bytes.replaceSubrange(40..<48, with: Data(count: 8))
        bytes.replaceSubrange(60..<64, with: Data(count: 4))
        let stripped = try self.program.folder.file("libstripped.so", bytes)
        let lines = try lines(of: program, preloading: [stripped])
        #expect(lines.contains("answer: linked in") && !lines.contains { $0.contains("(linked) Stripped") })
        #expect(
            lines.contains(
                "log: host \(stripped) has no section headers. Modules that are linked into it are not found."))
    }

    @Test func `A section that is no list of records is a line in the log`() throws {
        let odd = try CFixture.build(
            "__attribute__((used, section(\"plugin_modules\"))) static const char odd[] = \"three\";", name: "libodd.so"
        )
        let lines = try lines(of: program, preloading: [odd])
        #expect(lines.contains("answer: linked in"))
        #expect(lines.contains { $0.hasPrefix("log: host \(odd) has a section plugin_modules of 6 bytes") })
    }

    @Test func `The record of a module that a host has opened does not count for another host`() throws {
        let file = try library("Filed")
        try copyFile(file, to: "\(program.plugins)/filed.so")
        let lines = try lines(of: program, "--before", preloading: [library("Three")])
        #expect(lines.contains("module: filed.so 1.0.0 active") && lines.contains("answer of Filed: Filed answers"))
        #expect(lines.contains("module: (linked) Three 1.0.0 active") && lines.contains("answer: linked in"))
        #expect(!lines.contains { $0.contains("(linked) Filed") })
    }

    @Test func `Of several hosts one has what is linked into libraries, until its end`() throws {
        let lines = try lines(of: program, "--again", preloading: [library("Three")])
        #expect(lines.filter { $0.hasPrefix("another: ") }.count == 4 && lines.contains("another: linked in"))
        #expect(lines.contains { $0.hasPrefix("another: Another host") && $0.contains("linked into it (3)") })
    }
}
