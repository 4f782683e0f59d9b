import Foundation
import Glibc
import PluginABI
import PluginHost
import Testing

@testable import PluginHostCLI
@testable import TestSupport

@Suite(.timeLimit(.minutes(30))) struct ProgramTests {
    private let folder: TemporaryFolder

    init() throws { folder = try TemporaryFolder() }

    @Test(arguments: [["--help"], ["-h"], ["help"], []])
    func `the program's help goes to standard output`(arguments: [String]) throws {
        let outcome = try ProgramProcess(arguments).wait()
        #expect(outcome.code == 0)
        #expect(outcome.output.hasPrefix("OVERVIEW: "))
        #expect(outcome.output.contains("\nSUBCOMMANDS:\n  run  "))
        #expect(outcome.errors.isEmpty)
    }

    @Test(arguments: Program.commands.map { $0.specification.name })
    func `each command shows its help page in three ways`(command: String) throws {
        let pages = try [["help", command], [command, "-h"], [command, "--help", "--bogus"]].map {
            try ProgramProcess($0).wait()
        }
        #expect(pages.allSatisfy { $0.code == 0 && $0.output == pages[0].output && $0.errors.isEmpty })
        #expect(pages[0].output.contains("USAGE: pluginhost \(command) "))
    }

    @Test func `the version is printed`() throws {
        #expect(try ProgramProcess.run("--version").output == Program.version + "\n")
    }

    @Test(
        arguments: [
            (["lst"], "Did you mean “list”?"), (["--plugins", "x"], "Options follow the command."),
            (["list", "--plugin"], "Did you mean “--plugins”?"), (["list", "x"], "Unexpected argument 'x'."),
            (["call", "A"], "'<action>'"), (["call", "A", "b", "c"], "name=value"), (["help", "opne"], "“open”"),
            (["list", "--attach", "/x", "--trust"], "'--trust'"), (["open", "u", "--timeout", "x"], "'--timeout'"),
        ] as [([String], String)])
    func `a usage error has a reason and a suggestion, and exits with 64`(arguments: [String], text: String) throws {
        let outcome = try ProgramProcess(arguments).wait()
        #expect(outcome.code == 64)
        #expect(outcome.output.isEmpty)
        #expect(outcome.errors.hasPrefix("Error: "))
        #expect(outcome.errors.contains(text))
        #expect(outcome.errors.contains("\nUsage: pluginhost "))
    }

    @Test func `with --json an error is one object on standard output`() throws {
        let outcome = try ProgramProcess.run("call", "--json", "--plugins", folder.path, "Nobody", "nothing")
        #expect(outcome.code == 69)
        #expect(outcome.json?["error"]?["code"] == "unknownTarget")
        #expect(outcome.json?.map?.count == 1)
        #expect(outcome.output.filter { $0 == "\n" }.count == 1)
    }

    @Test func `an empty folder gives an empty list`() throws {
        let outcome = try ProgramProcess.run("list", "--json", "--plugins", folder.path)
        #expect(outcome.code == 0 && outcome.output == "[]\n" && outcome.errors.isEmpty)
        #expect(try ProgramProcess.run("list", "--plugins", folder.path).output == "No modules.\n")
    }

    @Test func `a missing folder is reported, and the rest is still listed`() throws {
        let missing = folder.path + "/none"
        let outcome = try ProgramProcess.run("list", "--json", "--plugins", missing, "--plugins", folder.path)
        #expect(outcome.code == 0 && outcome.output == "[]\n")
        #expect(outcome.errors.contains(missing))
    }

    @Test func `the folders come from the environment, then from the working folder`() throws {
        let outcome = try ProgramProcess.run("list", environment: ["PLUGINHOST_PATH": "/none/a:\(folder.path)"])
        #expect(outcome.errors.contains("/none/a") && !outcome.errors.contains(folder.path))
        #expect(try ProgramProcess.run("list", folder: folder.path).errors.contains("./plugins"))
    }

    @Test(arguments: [("{", 78), ("[]", 78), (nil, 66)] as [(String?, Int32)])
    func `an unusable configuration is an error`(text: String?, code: Int32) throws {
        let file = folder.path + "/c.json"
        try text?.write(toFile: file, atomically: false, encoding: .utf8)
        #expect(try ProgramProcess.run("list", "--plugins", folder.path, "--config", file).code == code)
    }

    @Test func `exit codes distinguish bad URLs, missing files and unreachable hosts`() throws {
        #expect(try ProgramProcess.run("open", "--plugins", folder.path, "::").code == 65)
        #expect(try ProgramProcess.run("inspect", folder.path + "/none.so").code == 66)
        #expect(try ProgramProcess.run("list", "--attach", folder.path + "/none").code == 69)
        let long = String(repeating: "x", count: 200)
        #expect(try ProgramProcess.run("run", "--plugins", folder.path, "--socket", long).code == 73)
    }

    @Test func `a file that is not a module is bad data, in words and as JSON`() throws {
        let file = folder.path + "/text.so"
        try writeFile(Data("text".utf8), to: file)
        let words = try ProgramProcess.run("inspect", file)
        #expect(words.code == 65 && words.output.isEmpty)
        #expect(words.errors.contains("(invalidFile)"))
        let json = try ProgramProcess.run("inspect", "--json", file)
        #expect(json.code == 65)
        #expect(json.json?["error"]?["code"] == "invalidFile")
    }

    @Test(arguments: [SIGINT, SIGTERM])
    func `run serves on its socket until a signal, and ends in an orderly way`(signal: Int32) throws {
        let socket = folder.path + "/s"
        let host = try ProgramProcess(["run", "--plugins", folder.path, "--socket", socket, "--json"])
        let listening = host.line { $0.contains("\"listening\"") }
        #expect(try listening.map { try Value(json: $0) }?["socket"] == .string(socket))
        let list = try ProgramProcess.run("list", "--attach", socket, "--json")
        #expect(list.code == 0 && list.output == "[]\n")
        let call = try ProgramProcess.run("call", "--attach", socket, "--json", "Nobody", "nothing")
        #expect(call.code == 69 && call.json?["error"]?["code"] == "unknownTarget")
        #expect(try ProgramProcess.run("run", "--plugins", folder.path, "--socket", socket).code == 73)
        host.signal(signal)
        let outcome = try host.wait()
        #expect(outcome.code == 0)
        #expect(outcome.output.contains("\"stopping\""))
        #expect(!FileManager.default.fileExists(atPath: socket))
    }

    @Test func `a socket whose host was killed is taken over`() throws {
        let socket = folder.path + "/s"
        let first = try ProgramProcess(["run", "--plugins", folder.path, "--socket", socket])
        #expect(first.line { $0.contains("Listening on \(socket)") } != nil)
        first.signal(SIGKILL)
        #expect(try first.wait().signal == SIGKILL)
        #expect(try ProgramProcess.run("list", "--attach", socket).code == 69)
        let second = try ProgramProcess(["run", "--plugins", folder.path, "--socket", socket])
        #expect(second.line { $0.contains("Listening on \(socket)") } != nil)
        second.signal(SIGTERM)
        #expect(try second.wait().code == 0)
    }

    @Test func `output that cannot be written is an error`() throws {
        #expect(try ProgramProcess(["--version"], writingTo: [1: "/dev/full"]).wait().code == 74)
    }
}
