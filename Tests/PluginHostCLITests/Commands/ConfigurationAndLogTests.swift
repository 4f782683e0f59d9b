import Foundation
import Glibc
import PluginABI
import PluginHost
import Testing

@testable import PluginHostCLI
@testable import TestSupport

/// `--config`, `--log` and `--log-level` of the built program.
@Suite(.timeLimit(.minutes(30))) struct ConfigurationAndLogTests {
    private let folder: TemporaryFolder

    init() throws { folder = try TemporaryFolder() }

    private func write(_ text: String) throws {
        try text.write(toFile: folder.path + "/c.json", atomically: true, encoding: .utf8)
    }

    @Test func `run follows its configuration file, and keeps the last configuration if the file is broken`() throws {
        try write(#"{"ModuleA": {"a": 1}}"#)
        let host = try ProgramProcess([
            "run", "--plugins", folder.path, "--config", folder.path + "/c.json", "--json", "--log", "json",
        ])
        #expect(host.line { $0.contains("\"watching\"") } != nil)
        try write(#"{"ModuleA": {"a": 2}, "ModuleB": {}}"#)
        let change = host.line { $0.contains("\"configurationChanged\"") }
        #expect(try change.map { try Value(json: $0) }?["modules"] == ["ModuleA"])
        try write("{")
        let error = try #require(host.errorLine { $0.contains("\"error\"") }.map { try Value(json: $0) })
        #expect(error["level"] == "error" && error["module"] == .some(.null))
        #expect(
            error["message"]?.string?.contains("c.json is not valid JSON: a name is missing, at line 1, column 2.")
                == true, "\(error)")
        #expect(error["time"]?.string?.hasSuffix("Z") == true)
        try write(#"{"ModuleB": {"b": 1}, "ModuleA": {"a": 2}}"#)
        let next = host.line { $0.contains("\"configurationChanged\"") }
        #expect(try next.map { try Value(json: $0) }?["modules"] == ["ModuleB"])
        host.signal(SIGTERM)
        #expect(try host.wait().errors.isEmpty)
    }

    @Test func `run warns of a name in the configuration that no module has, and suggests one`() throws {
        try folder.copy(built("libModuleA.so"), as: "A.so")
        try write(#"{"ModulA": {}, "ModuleA": {}, "Elsewhere": {}, "isolatoin": []}"#)
        let host = try ProgramProcess([
            "run", "--plugins", folder.path, "--trust", "--config", folder.path + "/c.json", "--log", "json",
        ])
        var messages: [String] = []
        while messages.count < 3, let line = host.errorLine(where: { $0.contains("names the module") }) {
            messages.append(try Value(json: line)["message"]?.string ?? "")
        }
        host.signal(SIGTERM)
        #expect(try host.wait().code == 0)
        let none = "but there is no such module."
        #expect(
            messages == [
                "The configuration \(folder.path)/c.json names the module “Elsewhere”, \(none)",
                "The configuration \(folder.path)/c.json names the module “ModulA”, \(none) Did you mean “ModuleA”?",
                "The configuration \(folder.path)/c.json names the module “isolatoin”, \(none) Did you mean “isolation”?",
            ])
    }

    @Test func `a mistake in the configuration has the file, and where it is not JSON the line and the column`() throws
    {
        for (text, problem) in [
            (
                "{\n  \"ModuleA\": {\"é\": 1,}\n}",
                "is not valid JSON: a “,” follows the last element, at line 2, column 21."
            ),
            ("{\"A\": {},\r\n\"A\": {}}", "has the name “A” twice, at line 2, column 1. Use each name once."),
            ("{\"A\":\n\n", "is not valid JSON: a value is missing, at line 3, column 1."),
            ("{\"isolation\": [{\"modul\": \"A\"}]}", "is not valid. In the rule for isolated modules"),
        ] {
            try write(text)
            let file = ConfigurationFile(path: folder.path + "/c.json")
            let error = #expect(throws: PluginError.self) { try file.read() }
            #expect(error?.code == .invalidConfiguration)
            #expect(
                error?.message.hasPrefix("The configuration \(file.path) \(problem)") == true, "\(error as Any)")
        }
    }

    @Test func `a configuration over the size limit is refused, even if its size is not known`() throws {
        func error(_ path: String) -> PluginError? {
            #expect(throws: PluginError.self) { try ConfigurationFile(path: path).read() }
        }
        let file = ConfigurationFile(path: folder.path + "/c.json")
        try write(#"{"ModuleA": {"a": 1}}"# + String(repeating: " ", count: ConfigurationFile.sizeLimit - 21))
        #expect(try file.read().modules == ["ModuleA": ["a": 1]])
        try write("{}" + String(repeating: " ", count: ConfigurationFile.sizeLimit - 1))
        for path in [file.path, "/dev/zero"] {
            let refused = error(path)
            #expect(refused?.code == .invalidConfiguration)
            for word in [path, "16777216", "too long"] { #expect(refused?.message.contains(word) == true) }
        }
        #expect(error(folder.path + "/none")?.code == .fileNotFound)
        #expect(error(folder.path)?.code == .unreadable)
    }

    @Test func `the log is text or JSON, from a minimum level on`() throws {
        let missing = folder.path + "/none"
        let json = try ProgramProcess.run("list", "--plugins", missing, "--log", "json")
        #expect(try Value(json: json.errors)["level"] == "warning")
        #expect(try ProgramProcess.run("list", "--plugins", missing).errors.hasPrefix("Warning: The plugins folder"))
        #expect(try ProgramProcess.run("list", "--plugins", missing, "--log-level", "error").errors.isEmpty)
        #expect(try ProgramProcess.run("list", "--plugins", missing, "--log", "xml").code == 64)
        #expect(try ProgramProcess.run("list", "--plugins", missing, "--log-level", "loud").code == 64)
    }
}
