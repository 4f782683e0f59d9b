import Foundation
import PluginABI
import PluginFile
import PluginHost
import Testing

@testable import PluginHostCLI
@testable import TestSupport

/// Text from outside: on the control socket, on the command line, and in the configuration file.
@Suite(.timeLimit(.minutes(30))) struct HostileTextTests {
    private let folder: TemporaryFolder

    init() throws { folder = try TemporaryFolder() }

    private struct Line {
        let name: String
        let text: String
    }

    /// Text that crashes decoders, or makes them run forever.
    private static let lines: [Line] = {
        var lines: [Line] = []
        for count in [511, 512, 513, 514, 1000, 100_000] {
            let open = String(repeating: "[", count: count)
            let closed = String(repeating: "]", count: count)
            let objects = String(repeating: "{\"a\":[", count: count)
            lines.append(Line(name: "\(count) open lists", text: open))
            lines.append(Line(name: "\(count) open objects", text: objects))
            lines.append(Line(name: "\(count) lists", text: open + closed))
            lines.append(Line(name: "\(count) closed lists", text: closed))
        }
        let marks = String(repeating: "\u{315}\u{300}", count: 1 << 18)
        lines.append(Line(name: "digits", text: "[" + String(repeating: "7", count: 1 << 20) + "]"))
        lines.append(Line(name: "an exponent", text: "[1e400]"))
        lines.append(Line(name: "a minus", text: "[-]"))
        lines.append(Line(name: "half a character", text: "[\"\\ud800\"]"))
        lines.append(Line(name: "a name of marks", text: "{\"\(marks)\":1}"))
        return lines
    }()

    @Test func `No line on the control socket crashes the host or blocks other clients`() async throws {
        let path = folder.path + "/s"
        let host = try ProgramProcess(["run", "--plugins", folder.path, "--socket", path, "--json"])
        try #require(host.line { $0.contains("\"listening\"") } != nil)
        for line in Self.lines {
            let answer = try Self.answer(to: line.text, on: path)
            #expect(answer?["error"]?["code"] == -32700, "\(line.name)")
        }
        #expect(try Self.answer(to: #"{"jsonrpc":"2.0","id":1,"method":"list"}"#, on: path)?["id"] == 1)
        host.signal(SIGTERM)
        #expect(try host.wait().code == 0)
    }

    /// Sends a line and reads the answer.
    private static func answer(to line: String, on path: String) throws -> Value? {
        let client = try SocketClient(path)
        client.send(line)
        return client.answer()
    }

    @Test(arguments: [511, 512, 513, 514, 1000, 10_000]) func `No parameter on the command line crashes the program`(
        count: Int
    ) throws {
        for text in [String(repeating: "[", count: count), String(repeating: "{\"a\":[", count: count)] {
            let outcome = try ProgramProcess.run("call", "A", "b", "x=\(text)", "--plugins", folder.path, "--json")
            #expect(outcome.code == 69 && outcome.json?["error"]?["code"] == "unknownTarget")
        }
    }

    @Test(arguments: [512, 513, 514, 100_000]) func `No configuration crashes the program`(count: Int) throws {
        let file = folder.path + "/c.json"
        for text in [String(repeating: "[", count: count), String(repeating: "{\"a\":[", count: count)] {
            try Data(text.utf8).write(to: URL(filePath: file))
            let outcome = try ProgramProcess.run("list", "--plugins", folder.path, "--config", file, "--json")
            #expect(outcome.code == 78, "\(outcome.errors)")
            #expect(outcome.json?["error"]?["message"]?.string?.contains("is nested more than 128 levels deep") == true)
        }
        try Data(#"{"A": {}, "A": {"x": 1}}"#.utf8).write(to: URL(filePath: file))
        let outcome = try ProgramProcess.run("list", "--plugins", folder.path, "--config", file, "--json")
        #expect(outcome.json?["error"]?["message"]?.string?.contains("has the name “A” twice") == true)
    }

    /// The message that contains a value of the maximum depth is nested more deeply than the value.
    @Test func `An answer with a result of the maximum depth is read`() throws {
        let value = String(repeating: "[", count: 128) + String(repeating: "]", count: 128)
        let answer = Array("[{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"result\":\(value)}}]".utf8)
        #expect(try Value(jsonMessage: answer)[0]?["id"] == 1)
    }

    // MARK: Output to a terminal

    /// A sequence that sets the title of the terminal, in its 7-bit and 8-bit forms, and a change of direction.
    private static let evil = "\u{1B}]0;owned\u{7}\u{9B}2J\u{202E}x"

    private func isHarmless(_ text: String) -> Bool {
        !text.unicodeScalars.contains { $0.isTerminalControl && $0 != "\n" && $0 != "\t" }
    }

    @Test func `No name of a file, target, module or option reaches the terminal unescaped`() throws {
        let name = "\(Self.evil).so"
        try Data("no library".utf8).write(to: URL(filePath: "\(folder.path)/\(name)"))
        try Data("{".utf8).write(to: URL(filePath: "\(folder.path)/\(Self.evil).routes.json"))
        let plugins = ["--plugins", folder.path]
        let commands: [[String]] = [
            ["list"] + plugins, ["list", "--json"] + plugins, ["call", Self.evil, Self.evil] + plugins,
            ["call", Self.evil, Self.evil, "--json"] + plugins, ["open", "app://\(Self.evil)"] + plugins,
            ["open", Self.evil, "--json"] + plugins, ["routes"] + plugins, ["versions", Self.evil] + plugins,
            ["remove", Self.evil] + plugins, ["rollback", Self.evil] + plugins, ["post", Self.evil] + plugins,
            ["inspect", "\(folder.path)/\(name)"], ["inspect", "\(folder.path)/\(name)", "--json"],
            ["check", "\(folder.path)/\(name)"], ["check", "\(folder.path)/\(name)", "--json"], [Self.evil],
            ["help", Self.evil], ["--\(Self.evil)"], ["list", "--\(Self.evil)"], ["list", Self.evil],
            ["resolve", "--pattern", "/\(Self.evil)(", Self.evil], ["resolve", "--pattern", "/*", "/\(Self.evil)"],
            ["resolve", "app://\(Self.evil)/\(Self.evil)"] + plugins,
            ["list", "--log", "json"] + ["--plugins", "\(folder.path)/\(Self.evil)"],
            ["list", "--config", Self.evil] + plugins, ["events", "--attach", Self.evil], ["new", Self.evil],
            ["facade", Self.evil] + plugins,
        ]
        for command in commands {
            let outcome = try ProgramProcess(command, environment: ["XDG_STATE_HOME": folder.path]).wait()
            #expect(isHarmless(outcome.output), "\(command.map(\.printable)): \(outcome.output.printable)")
            #expect(isHarmless(outcome.errors), "\(command.map(\.printable)): \(outcome.errors.printable)")
            #expect(outcome.code >= 0)
        }
    }

    @Test func `No name of a hundred thousand letters is repeated in full`() throws {
        let name = String(repeating: "x", count: 100_000)
        let plugins = ["--plugins", folder.path]
        for command in [
            ["call", name, name], ["call", name, name, "--service"], ["call", "A", "b", "\(name)=1", "\(name)=2"],
            ["call", name, name, "--object"], ["open", "app://\(name)"], ["open", "\(name)://a/b"],
            ["post", "host.\(name)"],
            ["versions", name], ["remove", name], ["rollback", name], ["inspect", name], ["help", name], [name],
            ["list", "--\(name)"], ["list", name], ["list", "--timeout", name], ["resolve", name],
            ["resolve", "--pattern", "\(name)(", "/"], ["resolve", "--pattern", "/", "%\(name)"], ["new", name],
            ["check", name], ["facade", name],
            ["list", "--config", name], ["list", "--attach", name], ["list", "--plugins", name],
            ["run", "--socket", name], ["run", "--trace", name], ["new", "A", "--path", name],
        ] {
            let isFree =
                ["inspect", "help", "new", "check"].contains(command[0]) || command[0] == name
                || command.contains("--pattern")
            let outcome = try ProgramProcess(
                command + (isFree ? [] : plugins), environment: ["XDG_STATE_HOME": folder.path]
            ).wait()
            #expect(outcome.output.count + outcome.errors.count < 10_000, "\(command.map(\.shortened))")
        }
    }

    @Test func `Only escape sequences for colours reach the terminal`() {
        let style = Style(isEnabled: true)
        let line = "a\tb\n" + style("c", .red)
        #expect(line.harmless == line)
        #expect("\u{1B}[2Jx\u{1B}[31".harmless == "\\u{1b}[2Jx\\u{1b}[31")
        #expect(Self.evil.harmless == "\\u{1b}]0;owned\\u{7}\\u{9b}2J\\u{202e}x")
    }
}
