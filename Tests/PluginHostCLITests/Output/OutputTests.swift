import PluginABI
import Testing

@testable import PluginHostCLI

@Suite struct OutputTests {
    private static let help = HelpPage(program: "pluginhost")

    @Test func `no line of any help page is wider than 80 columns`() {
        for command in Program.commands {
            let page = Self.help.page(of: command.specification)
            for line in page.split(separator: "\n") { #expect(line.count <= 80, "\(line)") }
        }
    }

    @Test func `a help page has the sections that Swift users expect`() {
        let page = Self.help.page(of: Call.specification)
        #expect(page.hasPrefix("OVERVIEW: "))
        for section in ["\nUSAGE: pluginhost call ", "\nARGUMENTS:\n  <target>  ", "\nOPTIONS:\n  --plugins <dir>  "] {
            #expect(page.contains(section))
        }
        #expect(page.hasSuffix("\n  -h, --help              Show help information."))
    }

    @Test func `a table is aligned, and says why a module failed`() {
        let table = RecordTable.modules.text([
            ["name": "A", "version": "1.0.0", "state": "active", "targets": ["A", "B"], "file": "/p/A.so"],
            [
                "name": nil, "version": nil, "state": "failed", "targets": [], "file": "/p/b\u{1B}[2J.so",
                "error": ["code": "invalidFile", "message": "no\nELF"],
            ],
        ])
        let expected = [
            "MODULE  VERSION  STATE   TARGETS  FILE",
            "A       1.0.0    active  A, B     /p/A.so",
            "-       -        failed  -        /p/b\\u{1b}[2J.so",
            "  no\\nELF",
        ]
        #expect(table.split(separator: "\n").map(String.init) == expected)
    }

    @Test func `a table on a terminal is truncated and coloured`() {
        let module: Value = ["name": "A", "version": "1", "state": "active", "targets": [], "file": "/long/path/A.so"]
        let text = RecordTable.modules.text([module], style: Style(isEnabled: true), width: 45)
        #expect(text.contains("\u{1B}[32mactive\u{1B}[0m"))
        #expect(text.contains("…") && text.hasSuffix("A.so"))
    }

    @Test func `an outline shows nested values`() {
        let value: Value = ["b": [["x": 1, "y": [2]], "t"], "a": "z", "e": [:]]
        let expected = ["a: z", "b:", "  - x: 1", "    y:", "      - 2", "  - t", "e: {}"]
        #expect(value.outline.split(separator: "\n").map(String.init) == expected)
    }

    @Test(
        arguments: [
            (.usage, .usage), (.invalidURL, .badData), (.mistypedParameter, .badData), (.unreadable, .noInput),
            (.unknownTarget, .unavailable), (.unknownService, .unavailable), (.actionFailed, .failed), ("own", .failed),
            (.outOfResources, .outOfResources), (.cannotListen, .cannotCreate),
            (.deadlineExceeded, .tryAgain), (.notRemote, .refused), (.invalidConfiguration, .badConfiguration),
        ] as [(PluginError.Code, ExitCode)])
    func `each error has its exit code`(code: PluginError.Code, exit: ExitCode) {
        #expect(ExitCode(PluginError(code, "")) == exit)
    }

    @Test func `an error that a module throws is a failed action, whatever its code`() {
        #expect(ExitCode(PluginError(.usage, "", source: "A")) == .failed)
    }

    @Test func `an error names its source if it has one`() {
        #expect(PluginError("c", "m", source: "A").record == ["code": "c", "message": "m", "source": "A"])
        #expect(PluginError("c", "m").record == ["code": "c", "message": "m"])
        #expect(PluginError("c", "m\u{1B}", source: "A").line == "A: m\\u{1b} (c)")
    }
}
