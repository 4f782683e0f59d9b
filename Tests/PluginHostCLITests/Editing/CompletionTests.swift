import Foundation
import Glibc
import PluginABI
import PluginFile
import PluginHost
import Testing

@testable import PluginHostCLI
@testable import TestSupport

@Suite(.timeLimit(.minutes(30))) struct CompletionTests {
    private let folder: TemporaryFolder

    init() throws { folder = try TemporaryFolder() }

    /// A host that knows a module, its target and a route.
    private struct Known: HostService {
        func request(_ method: String, _ parameters: [String: Value]) async throws(PluginError) -> Value {
            switch (method, parameters["target"]) {
            case ("list", _): try Value(json: #"[{"name": "Shop", "state": "active", "targets": ["A", "Cart"]}]"#)
            case ("routes", _): try Value(json: #"[{"pattern": "app://shop/detail/:key"}]"#)
            case ("actions", "A"):
                try Value(
                    json: """
                        [{"name": "show", "parameters": [{"name": "key", "type": "string", "required": true},
                        {"name": "all", "type": "bool"}, {"name": "icon", "type": "bytes"}]}, {"name": "evil\\u001b"}]
                        """)
            default: []
            }
        }

        func end() {}
    }

    private func complete(_ line: String, host: (any HostService)? = Known()) async -> [String] {
        let words = WordsOfLine(line).words
        let completer = Completer(commands: Program.specifications, host: host)
        return await completer.complete(words.last ?? "", after: words.dropLast()).map(\.text)
    }

    @Test(
        arguments: [
            ("rou", ["routes"]), ("help res", ["resolve", "restart"]), ("list --js", ["--json"]),
            ("list --json --js", []), ("list --plugins a --pl", ["--plugins"]), ("run --log ", ["text", "json"]),
            ("run --log=j", ["--log=json"]), ("run --log-level w", ["warning"]),
            ("completions ", ["bash", "zsh", "fish"]),
            ("call ", ["A", "Cart"]), ("call A ", ["show"]), ("call --json A s", ["show"]),
            ("call A show ", ["key=", "all=", "icon="]), ("call A show key=1 ", ["all=", "icon="]),
            ("call A show all=", ["all=true", "all=false"]), ("call A show all=t", ["all=true"]),
            ("call A show icon=", ["icon=@", "icon=base64:"]), ("call Nobody ", []),
            ("restart ", ["Shop"]), ("run --isolate S", ["Shop"]), ("open app", ["app://shop/detail/"]),
            ("release ", []), ("nonsense ", []), ("call -- A ", ["show"]),
        ] as [(String, [String])])
    func `commands, options, choices and what a host has are completed`(line: String, expected: [String]) async {
        #expect(await complete(line) == expected)
    }

    @Test func `without a host, commands and options are completed`() async {
        #expect(await complete("call ", host: nil) == [])
        #expect(await complete("call --serv", host: nil) == ["--service"])
    }

    @Test func `files and folders are completed`() async throws {
        try folder.file("modules/a b.so")
        try folder.file("modules/.hidden")
        try folder.file("modules/deep/c.so")
        let path = folder.path + "/modules"
        #expect(await complete("inspect \(folder.path)/mod") == [path + "/"])
        #expect(await complete("inspect \(path)/") == [path + "/a b.so", path + "/deep/"])
        #expect(await complete("inspect '\(path)/a ") == [path + "/a b.so"])
        #expect(await complete("inspect \(path)/.h") == [path + "/.hidden"])
        #expect(await complete("run --plugins \(path)/") == [path + "/deep/"])
        #expect(await complete("call A show icon=@\(path)/a") == ["icon=@\(path)/a b.so"])
    }

    @Test func `bash completes by its script, what a running host has as well`() throws {
        let plugins = try folder.folder("modules")
        try folder.copy(built("libModuleC.so"), as: "modules/libModuleC.so")
        let socket = folder.path + "/s"
        let host = try ProgramProcess(["run", "--plugins", plugins, "--socket", socket])
        #expect(host.line { $0.contains("Listening on") } != nil)
        let program = try ProgramProcess.run("completions", "bash")
        #expect(program.code == 0)
        let script = try folder.file("script", program.output)
        func complete(_ line: String) throws -> [String] {
            let code = """
                source "$1"; complete -p pluginhost > /dev/null || exit 1
                COMP_LINE=$2; COMP_POINT=${#2}; _pluginhost "$3" 2> /dev/null; printf '%s\\n' "${COMPREPLY[@]}"
                """
            let outcome = try ProgramProcess(
                ["-c", code, "bash", script, line, built("pluginhost")], program: "/bin/bash",
                environment: ["PLUGINHOST_SOCKET": socket]
            ).wait()
            #expect(outcome.code == 0)
            return outcome.output.split(separator: "\n").map(String.init)
        }
        #expect(try complete("pluginhost rou") == ["routes"])
        #expect(try complete("pluginhost list --attach=\(socket) --js") == ["--json"])
        #expect(try complete("pluginhost run --log=j") == ["json"])
        #expect(try complete("pluginhost versions M") == ["ModuleC"])
        #expect(try complete("pluginhost call C me") == ["measure"])
        #expect(try complete("pluginhost call C add b") == ["b="])
        #expect(try complete("pluginhost bogus x").isEmpty)
        host.signal(SIGTERM)
        #expect(try host.wait().code == 0)
    }

    /// Lines as they are typed, and as they are completed by the Tab key, in every shell.
    private var typedLines: [(typed: String, completed: String)] {
        get throws {
            try folder.file("modules/libX y.so")
            return [
                ("pluginhost rou", "pluginhost routes "), ("pluginhost list --js", "pluginhost list --json "),
                ("pluginhost run --log j", "pluginhost run --log json "),
                ("pluginhost call A ke", "pluginhost call A ke"),
                ("pluginhost inspect ~/mod", "pluginhost inspect ~/modules/"),
                ("pluginhost inspect ~/modules/li", "pluginhost inspect ~/modules/libX\\ y.so "),
                (
                    "pluginhost inspect \(folder.path)/modules/li",
                    "pluginhost inspect \(folder.path)/modules/libX\\ y.so "
                ),
            ]
        }
    }

    /// A shell that is not installed is not tested.
    @Test(
        .enabled("The shell is not installed.") { Tool("zsh") != nil || Tool("bash") != nil },
        arguments: ["zsh", "bash"].filter { Tool($0) != nil })
    func `shells at a terminal complete by their scripts`(shell: String) throws {
        let script = try ProgramProcess.run("completions", shell)
        #expect(script.code == 0 && script.output.contains("complete-words \(shell)"))
        let file = try folder.file("script", script.output)
        let programs = (built("pluginhost") as NSString).deletingLastPathComponent
        let begin =
            shell == "zsh"
            ? "autoload -U compinit; compinit -u -D; show() { print -r -- \"<$BUFFER>\" }; zle -N show; bindkey '^Xs' show"
            : #"bind -x '"\C-xs": echo "<$READLINE_LINE>"'"#
        let terminal = try TerminalProcess(
            shell == "zsh" ? ["-f", "-i"] : ["--norc", "--noprofile", "-i"], program: Tool(shell)!.path,
            environment: ["PATH": "\(programs):/usr/bin:/bin", "HOME": folder.path, "TERM": "dumb"])
        terminal.type("\(begin); source \(file); echo REA''DY\n")
        #expect(terminal.shows("READY"))
        for line in try typedLines {
            terminal.type("\u{15}\(line.typed)\t\u{18}s")
            #expect(terminal.shows("<\(line.completed)>"), "\(terminal.output)")
        }
    }

    @Test(.enabled("fish is not installed.") { Tool("fish") != nil })
    func `fish completes by its script`() throws {
        let fish = try #require(Tool("fish"))
        let script = try ProgramProcess.run("completions", "fish")
        #expect(script.code == 0 && script.output.contains("complete-words fish"))
        let file = try folder.file("script", script.output)
        let programs = (built("pluginhost") as NSString).deletingLastPathComponent
        func complete(_ line: String) throws -> [String] {
            let code = """
                set -x HOME \(folder.path); set -x PATH \(programs) $PATH
                source \(file); complete -C '\(line.replacing("'", with: "\\'"))'
                """
            return try fish.run(["--no-config", "-c", code]).split(separator: "\n").map { line in
                line.split(separator: "\t").first.map(String.init) ?? ""
            }
        }
        for line in try typedLines {
            let typed = line.typed.split(separator: " ").last ?? ""
            let completed = line.completed.replacing("\\ ", with: " ").dropFirst(line.typed.count - typed.count)
            let end = completed.hasSuffix(" ") ? 1 : 0
            let expected = line.typed == line.completed ? [] : [String(completed.dropLast(end))]
            #expect(try complete(line.typed) == expected, "\(line.typed)")
        }
        let path = folder.path + "/modules"
        for typed in ["'\(path)/libX y", "\"\(path)/libX y", "\(path)/libX\\ y"] {
            #expect(try complete("pluginhost inspect \(typed)") == ["\(path)/libX y.so"], "\(typed)")
        }
    }

    @Test func `the answers for zsh and fish have a help text`() throws {
        let fish = try ProgramProcess.run("complete-words", "fish", "rou")
        #expect(fish.output.hasPrefix("routes\tShow the routes"))
        let zsh = try ProgramProcess.run("complete-words", "zsh", "call", "--from")
        #expect(zsh.output.hasPrefix("whole\t--from\tThe lowest"))
        #expect(try ProgramProcess.run("completions", "tcsh").code == 64)
    }
}
