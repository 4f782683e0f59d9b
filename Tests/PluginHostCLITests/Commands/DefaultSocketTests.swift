import Foundation
import Glibc
import PluginABI
import PluginHost
import Testing

@testable import PluginHostCLI
@testable import TestSupport

/// The socket that `run` listens on, and that commands try, if none is named.
@Suite(.timeLimit(.minutes(30))) struct DefaultSocketTests {
    private let folder: TemporaryFolder
    private let plugins: String

    init() throws {
        folder = try TemporaryFolder()
        plugins = try folder.folder("modules")
        try folder.copy(built("libModuleC.so"), as: "modules/libModuleC.so")
    }

    private func start(_ environment: [String: String]) throws -> ProgramProcess {
        let host = try ProgramProcess(["run", "--plugins", plugins], environment: environment)
        _ = host.line { $0.contains("Listening on") }
        return host
    }

    @Test func `its path comes from the environment`() {
        #expect(DefaultSocket.path(["PLUGINHOST_SOCKET": "/a", "XDG_RUNTIME_DIR": "/b"]) == "/a")
        #expect(DefaultSocket.path(["XDG_RUNTIME_DIR": "/b"]) == "/b/pluginhost.sock")
        #expect(DefaultSocket.path(["PLUGINHOST_SOCKET": "", "XDG_RUNTIME_DIR": "/b"]) == nil)
        #expect(DefaultSocket.path(["XDG_RUNTIME_DIR": "b"]) == nil)
        #expect(DefaultSocket.path([:]) == nil)
    }

    @Test func `commands ask the host that runs, and say so, unless they are told to have their own`() throws {
        let runtime = ["XDG_RUNTIME_DIR": folder.path]
        let socket = "\(folder.path)/pluginhost.sock"
        let before = try ProgramProcess.run("list", "--json", environment: runtime, folder: folder.path)
        #expect(before.output == "[]\n" && before.errors.contains("./plugins"))
        let host = try start(runtime)
        let list = try ProgramProcess.run("list", "--json", environment: runtime)
        #expect(list.module("libModuleC.so")?["state"] == "active")
        #expect(list.errors == "Using the host on \(socket).\n")
        #expect(try ProgramProcess.run("events", environment: runtime).code == 0)

        let empty = try folder.folder("empty")
        let own = try ProgramProcess.run("list", "--json", "--plugins", empty, environment: runtime)
        #expect(own.output == "[]\n" && own.errors.isEmpty)
        let path = runtime.merging(["PLUGINHOST_PATH": empty]) { $1 }
        let ofPath = try ProgramProcess.run("list", "--json", environment: path)
        #expect(ofPath.output == "[]\n" && ofPath.errors.isEmpty)
        host.signal(SIGTERM)
        #expect(try host.wait().code == 0)
    }

    @Test func `a host that does not answer is an error that says what to do`() throws {
        // A socket that accepts connections, but never answers.
        let silent = try ListeningSocket(path: folder.path + "/silent")
        defer { silent.remove() }
        let environment = ["PLUGINHOST_SOCKET": silent.path]
        let list = try ProgramProcess.run("list", environment: environment)
        #expect(list.code == 75 && list.output.isEmpty)
        for text in ["The host on \(silent.path) has not answered within 5 s", "--attach \(silent.path)", "--plugins"] {
            #expect(list.errors.contains(text), "\(list.errors)")
        }
        #expect(try ProgramProcess.run("list", "--plugins", plugins, environment: environment).code == 0)

        // The queue of the socket is full.
        var waiting: [CInt] = []
        defer { for descriptor in waiting { close(descriptor) } }
        repeat {
            waiting.append(UnixSocket.make(flags: __socket_type(SOCK_CLOEXEC.rawValue | SOCK_NONBLOCK.rawValue)))
        } while UnixSocket.connect(waiting.last!, to: silent.path) == 0
        for probe in [nil, Duration.milliseconds(10)] {
            let error = #expect(throws: PluginError.self) {
                try AttachedHost(path: silent.path, patience: .milliseconds(10), probe: probe)
            }
            #expect(error?.code == .deadlineExceeded)
        }
    }

    @Test func `a second host leaves the socket to the first one`() throws {
        let environment = ["PLUGINHOST_SOCKET": "\(folder.path)/own"]
        let first = try start(environment)
        let second = try ProgramProcess(
            ["run", "--plugins", try folder.folder("empty"), "--json"], environment: environment)
        let note = second.errorLine { $0.contains("already listens on \(folder.path)/own") }
        #expect(note?.contains("--socket") == true)
        #expect(try ProgramProcess.run("list", "--json", environment: environment).json?.list?.count == 1)
        second.signal(SIGTERM)
        #expect(try second.wait().code == 0)
        #expect(try ProgramProcess.run("list", "--json", environment: environment).json?.list?.count == 1)
        first.signal(SIGTERM)
        #expect(try first.wait().code == 0)
    }
}
