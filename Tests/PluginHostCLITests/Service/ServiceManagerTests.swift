import Foundation
import Glibc
import PluginABI
import PluginHost
import Testing

@testable import PluginHostCLI
@testable import TestSupport

/// `pluginhost run` as a service.
@Suite(.timeLimit(.minutes(30))) struct ServiceManagerTests {
    private let folder: TemporaryFolder
    private let plugins: String

    init() throws {
        folder = try TemporaryFolder()
        plugins = try folder.folder("plugins")
        try folder.copy(built("libModuleC.so"), as: "plugins/libModuleC.so")
    }

    private func start(_ arguments: [String], _ variables: [String: String]) throws -> ProgramProcess {
        try ProgramProcess(["run", "--plugins", plugins] + arguments, environment: variables, inSession: true)
    }

    @Test(arguments: [false, true])
    func `a service reports that it is ready, alive and ends, and reloads at SIGHUP`(isAbstract: Bool) throws {
        let socket = try NotifySocket((isAbstract ? "@" : "") + folder.path + "/notify")
        let configuration = try folder.file("c.json", "{}")
        let host = try start(
            ["--config", configuration, "--json"],
            ["NOTIFY_SOCKET": socket.address, "WATCHDOG_USEC": "400000"])
        #expect(socket.message("READY=1") == "READY=1\nSTATUS=1 module active")
        #expect(socket.message("WATCHDOG=1") != nil)
        #expect(socket.message("WATCHDOG=1") != nil)
        try folder.file("c.json", #"{"ModuleC": {"a": 1}}"#)
        host.signal(SIGHUP)
        #expect(socket.message("RELOADING=1")?.contains("\nMONOTONIC_USEC=") == true)
        #expect(socket.message("READY=1") != nil)
        #expect(host.line { $0.contains("\"configurationChanged\"") } != nil)
        #expect(host.errorLine { $0.contains("SIGHUP: ") } != nil)
        host.signal(SIGTERM)
        #expect(socket.message("STOPPING=1") != nil)
        #expect(try host.wait().code == 0)
    }

    @Test func `a SIGHUP while modules start is handled after that`() throws {
        let (begun, gate) = ("\(folder.path)/begun", "\(folder.path)/gate")
        let module = CModule(
            name: "Slow", setUp: "note(\"\(begun)\", \"\"); while (access(\"\(gate)\", F_OK) != 0) usleep(1000);")
        try module.build(into: plugins, as: "slow.so")
        let host = try start([], [:])
        #expect(eventually { FileManager.default.fileExists(atPath: begun) })
        host.signal(SIGHUP)
        try folder.file("gate")
        #expect(host.errorLine { $0.contains("SIGHUP: ") } != nil)
        host.signal(SIGTERM)
        #expect(try host.wait().code == 0)
    }

    @Test func `a watchdog of another process is not served, and a missing socket is reported once`() throws {
        let silent = try NotifySocket(folder.path + "/other")
        let host = try start(
            [], ["NOTIFY_SOCKET": silent.address, "WATCHDOG_USEC": "100000", "WATCHDOG_PID": "1"])
        #expect(silent.message("READY=1") != nil)
        usleep(200_000)
        host.signal(SIGTERM)
        #expect(silent.message("") == "STOPPING=1")
        #expect(try host.wait().code == 0)

        let lost = try start([], ["NOTIFY_SOCKET": folder.path + "/none"])
        #expect(lost.errorLine { $0.contains("The service manager cannot be told") } != nil)
        lost.signal(SIGTERM)
        #expect(try !lost.wait().errors.contains("cannot be told"))
    }

    @Test func `with a terminal, SIGHUP ends the host in order`() throws {
        let host = try TerminalProcess(
            ["run", "--plugins", plugins], environment: ["HOME": folder.path, "TERM": "dumb"])
        #expect(host.shows("pluginhost> "))
        host.signal(SIGHUP)
        #expect(host.shows("Stopping"))
        #expect(host.wait() == 0)
    }

    @Test func `lines of the log have a time, and as JSON the module, the action and the call`() throws {
        try folder.copy(built("libModuleA.so"), as: "plugins/libModuleA.so")
        let json = try start(["--json-log"], [:])
        let line = json.errorLine { $0.contains("The shop is open.") }
        let entry = try #require(line.map { try Value(json: $0) })
        #expect(entry["module"] == "ModuleA" && entry["action"] == "@setUp" && entry["level"] == "info")
        #expect(entry["call"]?.string.flatMap(UInt64.init) != nil && entry["time"]?.string?.hasSuffix("Z") == true)
        json.signal(SIGTERM)
        #expect(try json.wait().code == 0)

        let text = try start([], ["TZ": "XYZ-05:30"])
        let time = #/^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\+05:30  /#
        let open = text.errorLine { $0.hasSuffix("ModuleA (@setUp): The shop is open.") }
        #expect(open?.firstMatch(of: time) != nil)
        #expect(text.line { $0.firstMatch(of: time) != nil && $0.contains("Watching") } != nil)
        text.signal(SIGTERM)
        #expect(try text.wait().code == 0)
        #expect(try ProgramProcess.run("run", "--json-log", "--log", "text").code == 64)
    }
}
