import Foundation
import Glibc
import PluginABI
import PluginHost
import Testing

@testable import PluginHostCLI
@testable import TestSupport

/// `pluginhost run` while modules take long to start.
@Suite(.timeLimit(.minutes(30))) struct SlowStartProgramTests {
    private let program: HostProgram
    private let socket: String

    init() throws {
        program = try HostProgram()
        socket = "\(program.folder.path)/socket"
    }

    /// C code that waits until the test opens the gate.
    private var waiting: String { "while (access(\"\(program.folder.path)/gate\", F_OK) != 0) usleep(1000);" }

    /// Builds the module `Slow`, whose `init` waits, and the module `Other`.
    private func buildModules() throws {
        var module = CModule(name: "Slow")
        module.hooks = ["init": waiting]
        try module.build(into: program.plugins, as: "a.so")
        try CModule(name: "Other").build(into: program.plugins, as: "b.so")
    }

    private func state(of name: String, _ client: SocketClient) -> String? {
        client.ask("list")?["result"]?.list?.first { $0["name"]?.string == name }?["state"]?.string
    }

    @Test func `the socket answers while a module starts, and the host is ready when it does not wait any more`()
        throws
    {
        try buildModules()
        let notify = try NotifySocket(program.folder.path + "/notify")
        // The patience exceeds the duration of the test: the host waits until the gate is open.
        let host = try program.start(
            "run", "--socket", socket, "--json", "--hook-patience", "600", "--hook-timeout", "601",
            environment: ["NOTIFY_SOCKET": notify.address])
        let client = try SocketClient(socket)
        #expect(eventually { state(of: "Slow", client) == "starting" && state(of: "Other", client) == "starting" })
        #expect(client.ask("stats")?["result"]?.list != nil)
        #expect(client.ask("events")?["result"]?["events"] == [])
        let call: Value = ["target": "Other", "action": "answer", "timeout": 0.01]
        let refusal = client.ask("call", call)?["error"]
        #expect(refusal?["data"]?["code"] == "deadlineExceeded")
        #expect(refusal?["message"]?.string?.contains("The host is still starting") == true, "\(refusal ?? .null)")
        let early = try SocketClient(socket)
        early.request("call", ["target": "Other", "action": "answer"])
        #expect(!host.output.contains("started"))
        try program.folder.file("gate")
        #expect(notify.message("READY=1") == "READY=1\nSTATUS=2 modules active")
        #expect(host.line { $0.contains("\"listening\"") } != nil)
        #expect(early.answer()?["result"] == "yes")
        host.signal(SIGTERM)
        #expect(try host.wait().code == 0)
    }

    @Test func `events has the changes of a start that is running`() throws {
        var module = CModule(name: "Slow")
        module.hooks = ["didStart": waiting]
        try module.build(into: program.plugins, as: "a.so")
        try CModule(name: "Other").build(into: program.plugins, as: "b.so")
        // The patience exceeds the duration of the test: the start waits until the gate is open.
        let host = try program.start(
            "run", "--socket", socket, "--json", "--hook-patience", "600", "--hook-timeout", "601")
        let client = try SocketClient(socket)
        let events = client.ask("events", ["after": 0, "timeout": 60])?["result"]?["events"]?.list ?? []
        #expect(events.first?["event"] == "added", "\(events)")
        #expect(
            eventually { client.ask("events")?["result"]?["events"]?.list?.count { $0["event"] == "added" } == 2 })
        #expect(!host.output.contains("started"))
        try program.folder.file("gate")
        let started = try #require(host.line { $0.contains("\"started\"") })
        #expect(started.contains("Other"))
        #expect(client.ask("events")?["result"]?["events"]?.list?.count == 2)
        host.signal(SIGTERM)
        #expect(try host.wait().code == 0)
        #expect(!host.output.contains("\"added\""))
    }

    @Test func `run serves the others after the patience, and says which module is starting`() throws {
        try buildModules()
        let notify = try NotifySocket(program.folder.path + "/notify")
        let host = try program.start(
            "run", "--socket", socket, "--hook-patience", "1.5", environment: ["NOTIFY_SOCKET": notify.address])
        #expect(notify.message("READY=1") == "READY=1\nSTATUS=1 module active, 1 starting")
        let client = try SocketClient(socket)
        #expect(state(of: "Slow", client) == "starting" && state(of: "Other", client) == "active")
        #expect(host.errorLine { $0.contains("init of Slow 1.0.0") && $0.contains("running for 1.5 seconds") } != nil)
        try program.folder.file("gate")
        #expect(host.line { $0.contains("added Slow 1.0.0") } != nil)
        host.signal(SIGTERM)
        #expect(try host.wait().code == 0)
    }

    @Test func `SIGTERM ends a host while a call starts a registered module`() throws {
        let begun = "\(program.folder.path)/begun"
        var module = CModule(name: "Slow")
        module.isSealed = true
        module.setUp = "note(\"\(begun)\", \"yes\"); \(waiting)"
        try module.build(into: program.plugins, as: "a.so")
        let host = try program.start(
            "run", "--lazy", "--socket", socket, "--hook-patience", "600", "--hook-timeout", "601")
        let client = try SocketClient(socket)
        #expect(eventually { state(of: "Slow", client) == "registered" })
        client.request("call", ["target": "Slow", "action": "answer"])
        #expect(eventually { access(begun, F_OK) == 0 })
        host.signal(SIGTERM)
        try program.folder.file("gate")
        #expect(try host.wait().code == 0)
    }

    @Test func `a file whose constructor hangs is listed, and the log says what it keeps from happening`() throws {
        var module = CModule(name: "Slow")
        module.code = "__attribute__((constructor)) static void begin(void) { \(waiting) }"
        try module.build(into: program.plugins, as: "b.so")
        try CModule(name: "Other").build(into: program.plugins, as: "a.so")
        let host = try program.start("run", "--socket", socket, "--hook-patience", "1.5")
        let client = try SocketClient(socket)
        #expect(
            eventually {
                client.ask("list")?["result"]?.list?.contains {
                    $0["state"] == "starting" && $0["file"]?.string?.hasSuffix("/b.so") == true
                } == true
            })
        let line = host.errorLine { $0.contains("A constructor of") }
        #expect(line?.contains("/b.so has been running for 1.5 seconds") == true)
        #expect(line?.contains("no other library can be opened") == true && line?.contains("'--isolate'") == true)
        try program.folder.file("gate")
        #expect(host.line { $0.contains("Listening") } != nil)
        #expect(state(of: "Slow", client) == "active" && state(of: "Other", client) == "active")
        host.signal(SIGTERM)
        #expect(try host.wait().code == 0)
    }

    @Test func `look-ups and diff wait for the start, with a limit`() throws {
        var module = CModule(name: "Slow")
        module.hooks = ["init": waiting]
        let file = try module.build(into: program.plugins, as: "a.so")
        var needy = CModule(name: "Needy")
        needy.moreManifest = #""requires": [{"module": "Absent"}], "#
        let other = try needy.build(into: program.plugins, as: "b.so")
        let host = try program.start(
            "run", "--socket", socket, "--timeout", "0.2", "--hook-patience", "600", "--hook-timeout", "601")
        let client = try SocketClient(socket)
        #expect(eventually { state(of: "Slow", client) == "starting" })
        #expect(client.ask("actions", ["target": "Slow"])?["error"]?["data"]?["code"] == "deadlineExceeded")
        func diff(_ file: String, _ options: String...) throws -> ProgramProcess.Outcome {
            try ProgramProcess(["diff", file, "--attach", socket, "--trust"] + options).wait()
        }
        let early = try diff(file, "--timeout", "0.01")
        #expect(early.code == 75 && early.errors.contains("still starting"), "\(early)")
        try program.folder.file("gate")
        #expect(host.line { $0.contains("Listening") } != nil)
        let same = try diff(file)
        #expect(same.code == 0 && same.output == "Slow 1.0.0: the same interface\n", "\(same)")
        let unserved = try diff(other)
        #expect(unserved.code == 69 && unserved.errors.contains("does not serve it"), "\(unserved)")
        #expect(unserved.errors.contains("“waiting”") && unserved.output.isEmpty, "\(unserved)")
        #expect(try diff(program.plugins).code == 69)
    }

    @Test func `methods that wait for the start are not answered on reserved connections`() {
        let names = HostMethod.all.filter(\.waits).map(\.name)
        #expect(Set(["resolve", "types", "actions", "manifest", "call", "events"]).isSubset(of: names))
        #expect(!names.contains("list") && !names.contains("stats"))
    }
}
