import Glibc
import PluginABI
import Testing

@testable import TestSupport

/// Commands that only read a host whose modules start when they are first needed.
@Suite(.timeLimit(.minutes(30))) struct LazyHostTests {
    /// A sealed module whose code ends the process as soon as it is opened.
    private func trap(_ version: String) -> CModule {
        CModule(
            name: "Trap", version: version, isSealed: true,
            moreManifest: #"""
                "services": [{
                    "name": "Speech", "version": "1.0.0", "target": "T",
                    "interface": [
                        {"name": "say", "parameters": [{"name": "text", "type": "string", "required": true}]}
                    ]
                }],
                """#,
            code: "__attribute__((constructor)) static void begin(void) { abort(); }",
            targets: [
                .init(
                    name: "T",
                    actions: [
                        .init(name: "say", parameters: ["text": "string"], body: ""), .init(name: "shout", body: ""),
                    ])
            ])
    }

    @Test func `Commands that read a lazy host open no file`() throws {
        let folder = try TemporaryFolder()
        let (plugins, new, socket) = (try folder.folder("plugins"), try folder.folder("new"), "\(folder.path)/s")
        try trap("1.0.0").build(into: plugins, as: "trap.so")
        try trap("1.1.0").build(into: new, as: "trap.so")
        let host = try ProgramProcess(["run", "--lazy", "--plugins", plugins, "--socket", socket, "--trust"])
        #expect(host.line { $0.contains("Listening on") } != nil)
        func run(_ words: String...) throws -> ProgramProcess.Outcome {
            try ProgramProcess(words, environment: ["PLUGINHOST_SOCKET": socket]).wait()
        }
        for words in [["diff", new], ["diff", "\(new)/trap.so"]] {
            let diff = try ProgramProcess(words + ["--attach", socket, "--trust"]).wait()
            #expect(diff.code == 0 && diff.output.hasPrefix("Trap 1.0.0 → 1.1.0"), "\(diff)")
        }
        let facade = try run("facade", "Trap", "--attach", socket)
        #expect(facade.code == 0 && facade.output.contains("func say("), "\(facade)")
        func completed(_ words: String...) throws -> [Substring] {
            let outcome = try ProgramProcess(
                ["complete-words", "fish", "call"] + words, environment: ["PLUGINHOST_SOCKET": socket]
            ).wait()
            return outcome.output.split(separator: "\n").compactMap { $0.split(separator: "\t").first }
        }
        #expect(try completed("") == ["T"])
        #expect(try completed("T", "") == ["say", "shout"])
        #expect(try completed("T", "say", "") == ["text="])
        #expect(try completed("--service", "Speech", "") == ["say"])
        let list = try run("list", "--attach", socket, "--json")
        #expect(list.module("trap.so")?["state"] == "registered", "\(list)")
        host.signal(SIGTERM)
        #expect(try host.wait().code == 0)
    }
}
