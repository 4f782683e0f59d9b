import Dispatch
import FoundationEssentials
import Glibc
import PluginABI
import PluginHost
import Synchronization
import Testing

@testable import PluginHostCLI
@testable import TestSupport

@Suite(.timeLimit(.minutes(30))) struct ControlServerTests {
    let folder: TemporaryFolder

    init() throws { folder = try TemporaryFolder() }
    var path: String { folder.path + "/s" }

    /// The semaphore that the method `block` waits for.
    let gate = DispatchSemaphore(value: 0)
    let hasBegun = DispatchSemaphore(value: 0)

    func server(
        limits: ControlServer.Limits = .init(), log: @escaping @Sendable (LogEntry) -> Void = { _ in }
    ) throws -> ControlServer {
        try ControlServer(path: path, limits: limits, log: log) {
            [gate, hasBegun] method, parameters async throws(RPCError) in
            switch method {
            case "echo": return parameters ?? nil
            case "fail": throw .host(PluginError("own", parameters?[0]?.string ?? ""))
            case "block":
                Self.wait(for: gate, telling: hasBegun)
                return true
            case "wait":
                hasBegun.signal()
                try? await Task.sleep(for: .seconds(600))
                return .bool(Task.isCancelled)
            case "list": return [["name": "A"]]
            case "call": throw .host(PluginError(.unknownTarget, "There is no target missing."))
            default: throw .unknownMethod("There is no method '\(method)'.")
            }
        }
    }

    static func wait(for gate: DispatchSemaphore, telling hasBegun: DispatchSemaphore) {
        hasBegun.signal()
        gate.wait()
    }

    /// Returns when this many requests have begun.
    func begin(_ count: Int) { for _ in 0..<count { hasBegun.wait() } }

    func open(_ count: Int) { for _ in 0..<count { gate.signal() } }

    @Test func `only its user can access the socket, which is removed with the server`() async throws {
        let server = try server()
        var status = stat()
        try #require(lstat(path, &status) == 0)
        #expect(status.st_mode == S_IFSOCK | 0o600)
        server.stop()
        #expect(lstat(path, &status) != 0)
        server.stop()
    }

    @Test func `a socket in use and a file are not replaced, but a dead socket is`() async throws {
        let first = try server()
        #expect(throws: PluginError.self) { try server() }
        first.stop()
        // A socket on which no process listens any more.
        let dead = UnixSocket.make()
        try #require(UnixSocket.bind(dead, to: path) == 0)
        close(dead)
        (try server()).stop()
        try Data().write(to: URL(filePath: path))
        let error = #expect(throws: PluginError.self) { try server() }
        #expect(error?.code == .cannotListen)
        #expect(FileManager.default.fileExists(atPath: path))
    }

    @Test(arguments: ["", String(repeating: "x", count: 200), "/nonexistent/s"])
    func `an impossible path is an error`(path: String) {
        let error = #expect(throws: PluginError.self) {
            try ControlServer(path: path) { _, _ async throws(RPCError) in nil }
        }
        #expect(error?.code == .cannotListen)
    }

    @Test func `several requests are in flight on one connection`() async throws {
        let server = try server()
        let client = try SocketClient(path)
        for id in 0..<32 { client.send(#"{"jsonrpc":"2.0","id":\#(id),"method":"block"}"#) }
        client.send(#"{"jsonrpc":"2.0","id":"quick","method":"echo"}"#)
        #expect(client.answer()?["id"] == "quick")
        open(32)
        let answers = (0..<32).compactMap { _ in client.answer()?["id"]?.int }
        #expect(Set(answers) == Set(0..<32))
        server.stop()
    }

    @Test func `requests over the limit wait for their turn`() async throws {
        var limits = ControlServer.Limits()
        limits.requestsInFlight = 2
        limits.pendingBytes = 100
        let server = try server(limits: limits)
        let client = try SocketClient(path)
        DispatchQueue(label: "writer").async { [client] in
            for id in 0..<2_000 {
                client.send(#"{"jsonrpc":"2.0","id":\#(id),"method":"echo","params":["0123456789"]}"#)
            }
        }
        let answers = (0..<2_000).compactMap { _ in client.answer()?["id"]?.int }
        #expect(answers.count == 2_000 && Set(answers).count == 2_000)
        server.stop()
    }

    @Test func `a request over the limit begins only after another one has ended`() async throws {
        var limits = ControlServer.Limits()
        limits.requestsInFlight = 2
        let server = try server(limits: limits)
        let client = try SocketClient(path)
        for id in 1...2 { client.send(#"{"jsonrpc":"2.0","id":\#(id),"method":"block"}"#) }
        client.send(#"{"jsonrpc":"2.0","id":3,"method":"echo"}"#)
        begin(2)
        #expect(!client.hasAnswer(within: .milliseconds(200)))
        open(1)
        #expect([1, 2].contains(client.answer()?["id"]?.int))
        #expect(client.answer()?["id"] == 3)
        open(1)
        server.stop()
    }

    @Test func `no request of a client begins until it reads its earlier answers`() async throws {
        var limits = ControlServer.Limits()
        limits.pendingBytes = 100 << 10
        let server = try server(limits: limits)
        let client = try SocketClient(path)
        let long = String(repeating: "x", count: 4 << 20)
        client.send(#"{"jsonrpc":"2.0","id":1,"method":"echo","params":["\#(long)"]}"#)
        #expect(client.hasAnswer(within: .seconds(60)))
        client.send(#"{"jsonrpc":"2.0","id":2,"method":"block"}"#)
        let isEarly = hasBegun.wait(timeout: .now() + .milliseconds(200)) == .success
        #expect(!isEarly)
        #expect(client.answer()?["id"] == 1)
        if !isEarly { begin(1) }
        open(1)
        #expect(client.answer()?["id"] == 2)
        server.stop()
    }

    @Test func `the bytes of lines whose requests run are limited, per client and in total`() async throws {
        for isOfOne in [true, false] {
            var limits = ControlServer.Limits()
            limits.smallLineBytes = 1 << 10
            if isOfOne { limits.lineBytesInFlight = 100 << 10 } else { limits.lineBytesInAll = 150 << 10 }
            let server = try server(limits: limits)
            let clients = try (0..<3).map { _ in try SocketClient(path) }
            let long = String(repeating: "x", count: 100 << 10)
            clients[0].send(#"{"jsonrpc":"2.0","id":1,"method":"block","params":["\#(long)"]}"#)
            begin(1)
            let waiting = isOfOne ? clients[0] : clients[1]
            waiting.send(#"{"jsonrpc":"2.0","id":2,"method":"echo","params":["\#(long)"]}"#)
            #expect(!waiting.hasAnswer(within: .milliseconds(200)), "of one client: \(isOfOne)")
            // Short lines of other clients do not wait.
            clients[2].send(#"{"jsonrpc":"2.0","id":3,"method":"echo"}"#)
            #expect(clients[2].answer()?["id"] == 3)
            open(1)
            #expect(clients[0].answer()?["id"] == 1)
            #expect(waiting.answer()?["id"] == 2)
            server.stop()
        }
    }

    @Test func `a client that does not read its answers blocks no other client`() async throws {
        let server = try server()
        let deaf = try SocketClient(path)
        let long = String(repeating: "x", count: 1 << 20)
        DispatchQueue(label: "deaf").async { [deaf] in
            for id in 0..<64 { deaf.send(#"{"jsonrpc":"2.0","id":\#(id),"method":"echo","params":["\#(long)"]}"#) }
        }
        usleep(200_000)
        let client = try SocketClient(path)
        client.send(#"{"jsonrpc":"2.0","id":1,"method":"list"}"#)
        #expect(client.answer()?["result"] == [["name": "A"]])
        deaf.hangUp()
        server.stop()
    }

    @Test func `a client that reads nothing is disconnected, and the log says so`() async throws {
        var limits = ControlServer.Limits()
        limits.readTime = .milliseconds(300)
        let entries = Mutex<[String]>([])
        let server = try server(limits: limits) { entry in entries.withLock { $0.append(entry.message) } }
        let deaf = try SocketClient(path)
        let long = String(repeating: "x", count: 1 << 20)
        deaf.send(#"{"jsonrpc":"2.0","id":1,"method":"echo","params":["\#(long)"]}"#)
        for _ in 0..<6000 where entries.withLock(\.isEmpty) { usleep(10_000) }
        #expect(entries.withLock { $0.first }?.contains("has read nothing for 0.3 seconds") == true)
        let client = try SocketClient(path)
        client.send(#"{"jsonrpc":"2.0","id":1,"method":"list"}"#)
        #expect(client.answer()?["id"] == 1)
        server.stop()
    }

    @Test func `the unread answers of a client are limited`() async throws {
        var limits = ControlServer.Limits()
        limits.unreadBytes = 3 << 20
        limits.pendingBytes = 1 << 30
        // The client reads nothing before it has sent everything.
        limits.readTime = .seconds(600)
        let server = try server(limits: limits)
        let deaf = try SocketClient(path)
        // Each answer is larger than the socket's buffer, so that all but the beginning of the first one waits.
        let long = String(repeating: "x", count: 1 << 20)
        for id in 0..<20 {
            deaf.send(#"{"jsonrpc":"2.0","id":\#(id),"method":"echo","params":["\#(long)"]}"#)
            usleep(20_000)
        }
        let answers = (0..<20).compactMap { _ in deaf.answer() }
        #expect(answers.count == 20)
        let refused = answers.filter { $0["error"]?["data"]?["code"] == "overloaded" }
        #expect(refused.first?["error"]?["message"]?.string?.contains("3145728") == true)
        server.stop()
    }

    @Test func `an answer over the limit is replaced by an error, and a small one is always sent`() async throws {
        var limits = ControlServer.Limits()
        limits.unreadBytes = 5 << 20
        limits.unreadBytesInAll = 5 << 20
        let server = try server(limits: limits)
        func echo(_ mebibytes: Int) -> String {
            #"{"jsonrpc":"2.0","id":1,"method":"echo","params":["\#(String(repeating: "x", count: mebibytes << 20))"]}"#
        }
        let client = try SocketClient(path)
        client.send(echo(6))
        let lost = client.answer()?["error"]
        #expect(lost?["data"]?["code"] == "overloaded")
        #expect(lost?["message"]?.string?.contains("was carried out") == true)
        client.send(echo(6).replacing("echo", with: "fail"))
        #expect(client.answer()?["error"]?["data"]?["code"] == "overloaded")
        let longID = String(repeating: "x", count: 6 << 20)
        client.send(#"{"jsonrpc":"2.0","id":"\#(longID)","method":"echo"}"#)
        let answer = client.answer()
        #expect(answer?["error"]?["data"]?["code"] == "overloaded" && answer?["id"] == .string(longID))
        client.send(echo(4))
        #expect(client.answer()?["result"] != nil)

        let deaf = try SocketClient(path)
        deaf.send(echo(4))
        deaf.waitForAnswer()
        client.send(echo(2))
        let refused = client.answer()?["error"]
        #expect(refused?["message"]?.string?.contains("wait for all clients") == true)
        client.send(#"{"jsonrpc":"2.0","id":2,"method":"echo"}"#)
        #expect(client.answer()?["id"] == 2)
        #expect(deaf.answer()?["result"] != nil)
        server.stop()
    }

    @Test func `unread answers are limited in total, except the only one of a client`() async throws {
        var limits = ControlServer.Limits()
        limits.unreadBytesInAll = 1 << 20
        let requests = ControlRequests(limits: limits) { _, parameters async throws(RPCError) in parameters ?? nil }
        defer { requests.end() }
        let other = requests.newLoad()
        other.add(2 << 20)
        let load = requests.newLoad()
        let endpoint = requests.endpoint(for: 1, load, requests.newExecutor())
        func ask() async throws -> Value? {
            try await endpoint.answer(Array(#"{"jsonrpc":"2.0","id":1,"method":"echo"}"#.utf8)).map {
                try Value(json: $0)
            }
        }
        #expect(try await ask()?["error"] == nil)
        #expect(load.value > 0)
        let error = try await ask()?["error"]
        let words = "1048576 bytes of answers wait for all clients"
        #expect(error?["data"]?["code"] == "overloaded" && error?["message"]?.string?.contains(words) == true)
        other.remove(2 << 20)
        #expect(try await ask()?["error"] == nil)
    }

    @Test func `an unterminated last line is answered after the client has closed its output`() async throws {
        let server = try server()
        let client = try SocketClient(path)
        client.send(#"{"jsonrpc":"2.0","id":1,"method":"block"}"#)
        client.write(#"{"jsonrpc":"2.0","id":2,"method":"echo"}"#)
        client.endInput()
        #expect(client.answer()?["id"] == 2)
        open(1)
        #expect(client.answer()?["id"] == 1)
        #expect(client.answer() == nil)
        server.stop()
    }

    @Test func `lines in pieces, blank lines and control characters are handled`() async throws {
        let server = try server()
        let client = try SocketClient(path)
        client.write("\n \r\n\t\n{\"jsonrpc\":\"2.0\",")
        usleep(50_000)
        client.write("\"id\":7,\"method\":\"echo\"}\r\n\u{0}x\n\u{0}\u{0}\n\u{1b} \u{8}\n")
        client.endInput()
        let answers = (0..<4).map { _ in client.answer() }
        #expect(answers.count { $0?["id"] == 7 } == 1)
        #expect(answers.count { $0?["error"]?["code"] == -32700 } == 3)
        #expect(client.answer() == nil)
        server.stop()
    }

    @Test func `a line over the limit is refused and ends the connection`() async throws {
        var limits = ControlServer.Limits()
        limits.lineBytes = 1_000
        limits.linger = .milliseconds(200)
        let server = try server(limits: limits)
        let client = try SocketClient(path)
        client.write(String(repeating: "x", count: 100_000))
        #expect(client.answer()?["error"]?["code"] == -32600)
        #expect(client.answer() == nil)
        let other = try SocketClient(path)
        other.send(#"{"jsonrpc":"2.0","id":1,"method":"list"}"#)
        #expect(other.answer()?["id"] == 1)
        server.stop()
    }

    @Test func `stopping waits for running requests, but not forever`() async throws {
        let server = try server()
        let client = try SocketClient(path)
        client.send(#"{"jsonrpc":"2.0","id":1,"method":"block"}"#)
        client.send(#"{"jsonrpc":"2.0","id":2,"method":"wait"}"#)
        begin(2)
        DispatchQueue(label: "gate").asyncAfter(deadline: .now() + .milliseconds(100)) { [gate] in gate.signal() }
        let start = ContinuousClock.now
        server.stop(grace: .seconds(3))
        #expect(ContinuousClock.now - start < .seconds(300))
        #expect(client.answer()?["id"] == 1)
        #expect(client.answer() == nil)
    }

    @Test func `the client side returns the host's results and errors`() async throws {
        let server = try server()
        let host = try AttachedHost(path: path)
        #expect(try await host.request("list", [:]) == [["name": "A"]])
        #expect(try await host.request("echo", ["x": 1, "timeout": 1.5]) == ["x": 1, "timeout": 1.5])
        let error = await #expect(throws: PluginError.self) { try await host.request("call", ["target": "missing"]) }
        #expect(error == PluginError(.unknownTarget, "There is no target missing."))
        server.stop()
        let gone = await #expect(throws: PluginError.self) { try await host.request("list", [:]) }
        #expect(gone?.code == .hostStopped)
        #expect(throws: PluginError.self) { try AttachedHost(path: path) }
    }

    @Test func `The client side does not wait forever, and refuses an endless answer`() async throws {
        let server = try ControlServer(path: path) { method, _ async throws(RPCError) in
            if method == "stats" { return .string(String(repeating: "x", count: 100_000)) }
            try? await Task.sleep(for: .seconds(600))
            return .null
        }
        defer { server.stop() }
        func error(
            _ method: String, _ parameters: [String: Value] = [:], patience: Duration = .milliseconds(50)
        ) async throws -> PluginError.Code? {
            let host = try AttachedHost(path: path, patience: patience, answerLimit: 10_000)
            return await #expect(throws: PluginError.self) { try await host.request(method, parameters) }?.code
        }
        #expect(try await error("list") == .deadlineExceeded)
        #expect(try await error("call", ["timeout": 0.05]) == .deadlineExceeded)
        #expect(try await error("stats", patience: .seconds(600)) == .cannotAttach)
    }
}
