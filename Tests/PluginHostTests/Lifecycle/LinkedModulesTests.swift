import Foundation
import Testing

@testable import TestSupport

/// A program with the linked module Linked 1.0.0, found by its record.
@Suite(.timeLimit(.minutes(30))) struct LinkedModulesTests {
    private let program: HostProgram

    init() throws { program = try HostProgram("LinkedProgram") }

    /// The lines that it prints.
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
}
