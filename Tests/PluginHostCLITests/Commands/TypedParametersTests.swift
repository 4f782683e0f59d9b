import Foundation
import Glibc
import PluginABI
import PluginHost
import Testing

@testable import PluginHostCLI
@testable import TestSupport

/// Parameters that are entered as text, with a host that the command starts and with a host that is already running.
@Suite(.timeLimit(.minutes(30))) struct TypedParametersTests {
    private let folder: TemporaryFolder
    private let plugins: String

    init() throws {
        folder = try TemporaryFolder()
        plugins = try folder.folder("plugins")
        for module in ["ModuleA", "ModuleB"] {
            try copyFile(built("lib\(module).so"), to: "\(plugins)/\(module).so")
        }
        let module = CModule(
            events: [
                (
                    "good.note", #", "parameters": [{"name": "key", "type": "string", "required": true}]"#,
                    "note(getenv(\"NOTES\"), \"noted\\n\");"
                )
            ],
            targets: [
                .init(
                    name: "Good",
                    actions: [
                        .init(name: "any", parameters: ["x": "any"], body: "reply_value(call->token, arguments[0]);")
                    ])
            ])
        try module.build(into: plugins, as: "good.so")
        try writeFile(Data([1, 2, 3, 250]), to: "\(folder.path)/@icon")
    }

    /// Runs commands, each of which starts its own host, then each attached to a running host.
    private func each(_ body: (_ run: (String...) throws -> ProgramProcess.Outcome) throws -> Void) throws {
        try body { words in try ProgramProcess(words + ["--plugins", plugins]).wait() }
        let socket = "\(folder.path)/s"
        let host = try ProgramProcess(["run", "--plugins", plugins, "--socket", socket])
        #expect(host.line { $0.contains("Listening") } != nil)
        try body { words in try ProgramProcess(words + ["--attach", socket]).wait() }
        host.signal(SIGTERM)
        #expect(try host.wait().code == 0)
    }

    @Test func `Text stays text for a declared string, and bytes come from a file or from base64`() throws {
        try each { run in
            let one = try run("call", "A", "fetchDetail", "key=1", "page=02", "--json")
            #expect(one.json?["result"] == ["title": "Detail of 1", "page": 2], "\(one.errors)")
            let json = try run("call", "--service", "HomeService", "fetchDetail", #"key={"a":1}"#, "--json")
            #expect(json.json?["result"]?["title"] == #"Detail of {"a":1}"#, "\(json.errors)")
            #expect(try run("call", "B", "greet", "name=@Ada").output == "Hello, @Ada!\n")
            #expect(try run("call", "B", "sum", "data=@\(folder.path)/@icon").output == "256\n")
            #expect(try run("call", "B", "sum", "data=base64:AQID").output == "6\n")
            #expect(try run("call", "Good", "any", "x=1", "--json").json?["result"] == 1)
            #expect(try run("call", "Good", "any", "x=\"1\"", "--json").json?["result"] == "1")
            #expect(try run("call", "Good", "any", "x=@file", "--json").json?["result"] == "@file")
            let missing = try run("call", "B", "sum", "data=@nothing", "--json")
            #expect(missing.code == 66 && missing.json?["error"]?["code"] == "unreadable")
            let wrong = try run("call", "B", "sum", "data=?", "--json")
            #expect(wrong.code == 64 && wrong.json?["error"]?["code"] == "usage")
            let mistyped = try run("call", "A", "fetchDetail", "key=x", "page=two", "--json")
            #expect(mistyped.code == 65 && mistyped.json?["error"]?["code"] == "mistypedParameter")
            #expect(try run("call", "Nobody", "a", "x=1", "--json").json?["error"]?["code"] == "unknownTarget")
        }
    }

    @Test func `The parameters of an event are converted to what its subscribers declare`() throws {
        try each { run in
            let outcome = try run("post", "good.note", "key=42", "--json")
            #expect(outcome.json?["delivered"] == 1 && outcome.json?["failures"] == [], "\(outcome.output)")
        }
    }

    @Test func `The prompt for pages converts as well`() throws {
        let outcome = try ProgramProcess(
            ["run", "--navigate", "--plugins", plugins],
            input: "open A/article key=pear note=1\npush app://shop/article/apple note=2\nquit\n"
        ).wait()
        let lines = outcome.output.split(separator: "\n")
        #expect(lines.contains("  1") && lines.contains("  2"), "\(outcome.output)\(outcome.errors)")
    }
}
