internal import Dispatch
internal import FoundationEssentials
internal import Glibc
internal import PluginABI
internal import PluginHost
internal import Synchronization
internal import Testing

@testable import PluginHostCLI

@Suite(.timeLimit(.minutes(30))) struct ControlServerTests {
    private let folder = TemporaryFolder()
    private var path: String { folder.path + "/s" }

    /// What the method `block` waits for.
    private let gate = DispatchSemaphore(value: 0)
    private let hasBegun = DispatchSemaphore(value: 0)

    private func server(limits: ControlServer.Limits = .init()) throws -> ControlServer {
        try ControlServer(path: path, limits: limits) { [gate, hasBegun] method, parameters async throws(RPCError) in
            switch method {
            case "echo": return parameters ?? nil
            case "block":
                Self.wait(for: gate, telling: hasBegun)
                return true
            case "wait":
                hasBegun.signal()
                try? await Task.sleep(for: .seconds(600))
                return .bool(Task.isCancelled)
            default: return try await ControlMethods(service: StubService()).handle(method, parameters)
            }
        }
    }

    private static func wait(for gate: DispatchSemaphore, telling hasBegun: DispatchSemaphore) {
        hasBegun.signal()
        gate.wait()
    }

    /// Returns when so many requests have begun.
    private func begin(_ count: Int) { for _ in 0..<count { hasBegun.wait() } }

    private func open(_ count: Int) { for _ in 0..<count { gate.signal() } }

    @Test func `the socket belongs to its user alone, and goes with the server`() async throws {
        let server = try server()
        var status = stat()
        try #require(lstat(path, &status) == 0)
        #expect(status.st_mode == S_IFSOCK | 0o600)
        await server.stop()
        #expect(lstat(path, &status) != 0)
        await server.stop()
    }

    @Test func `a living socket is not replaced, a dead one is, a file never`() async throws {
        let first = try server()
        #expect(throws: PluginError.self) { try server() }
        await first.stop()
        // A socket that nobody listens on any more.
        let dead = UnixSocket.make()
        try #require(UnixSocket.bind(dead, to: path) == 0)
        close(dead)
        await (try server()).stop()
        try Data().write(to: URL(filePath: path))
        let error = #expect(throws: PluginError.self) { try server() }
        #expect(error?.code == .cannotListen)
        #expect(FileManager.default.fileExists(atPath: path))
    }

    @Test(arguments: ["", String(repeating: "x", count: 200), "/nonexistent/s"])
    func `a path that cannot be is an error`(path: String) {
        let error = #expect(throws: PluginError.self) {
            try ControlServer(path: path) { _, _ async throws(RPCError) in nil }
        }
        #expect(error?.code == .cannotListen)
    }

    @Test func `several requests are in flight on one connection`() async throws {
        let server = try server()
        let client = try Client(path)
        for id in 0..<32 { client.send(#"{"jsonrpc":"2.0","id":\#(id),"method":"block"}"#) }
        client.send(#"{"jsonrpc":"2.0","id":"quick","method":"echo"}"#)
        #expect(client.answer()?["id"] == "quick")
        open(32)
        let answers = (0..<32).compactMap { _ in client.answer()?["id"]?.int }
        #expect(Set(answers) == Set(0..<32))
        await server.stop()
    }

    @Test func `more requests than may be in flight wait for their turn`() async throws {
        var limits = ControlServer.Limits()
        limits.requestsInFlight = 2
        limits.pendingBytes = 100
        let server = try server(limits: limits)
        let client = try Client(path)
        DispatchQueue(label: "writer").async { [client] in
            for id in 0..<2_000 {
                client.send(#"{"jsonrpc":"2.0","id":\#(id),"method":"echo","params":["0123456789"]}"#)
            }
        }
        let answers = (0..<2_000).compactMap { _ in client.answer()?["id"]?.int }
        #expect(answers.count == 2_000 && Set(answers).count == 2_000)
        await server.stop()
    }

    @Test func `a client that does not read its answers blocks nobody`() async throws {
        let server = try server()
        let deaf = try Client(path)
        let long = String(repeating: "x", count: 1 << 20)
        DispatchQueue(label: "deaf").async { [deaf] in
            for id in 0..<64 { deaf.send(#"{"jsonrpc":"2.0","id":\#(id),"method":"echo","params":["\#(long)"]}"#) }
        }
        usleep(200_000)
        let client = try Client(path)
        client.send(#"{"jsonrpc":"2.0","id":1,"method":"list"}"#)
        #expect(client.answer()?["result"] == [["name": "A"]])
        deaf.hangUp()
        await server.stop()
    }

    @Test func `a last line without an end is answered, also after the client has sent all`() async throws {
        let server = try server()
        let client = try Client(path)
        client.send(#"{"jsonrpc":"2.0","id":1,"method":"block"}"#)
        client.write(#"{"jsonrpc":"2.0","id":2,"method":"echo"}"#)
        client.endInput()
        #expect(client.answer()?["id"] == 2)
        open(1)
        #expect(client.answer()?["id"] == 1)
        #expect(client.answer() == nil)
        await server.stop()
    }

    @Test func `a line in pieces, blank lines, and bytes that are no text`() async throws {
        let server = try server()
        let client = try Client(path)
        client.write("\n \r\n{\"jsonrpc\":\"2.0\",")
        usleep(50_000)
        client.write("\"id\":7,\"method\":\"echo\"}\r\n\u{0}x\n")
        let answers = [client.answer(), client.answer()]
        #expect(answers.contains { $0?["id"] == 7 })
        #expect(answers.contains { $0?["error"]?["code"] == -32700 })
        await server.stop()
    }

    @Test func `a line beyond the limit is refused and ends the connection`() async throws {
        var limits = ControlServer.Limits()
        limits.lineBytes = 1_000
        limits.linger = .milliseconds(200)
        let server = try server(limits: limits)
        let client = try Client(path)
        client.write(String(repeating: "x", count: 100_000))
        #expect(client.answer()?["error"]?["code"] == -32600)
        #expect(client.answer() == nil)
        let other = try Client(path)
        other.send(#"{"jsonrpc":"2.0","id":1,"method":"list"}"#)
        #expect(other.answer()?["id"] == 1)
        await server.stop()
    }

    @Test func `stopping waits for what runs, and not for ever`() async throws {
        let server = try server()
        let client = try Client(path)
        client.send(#"{"jsonrpc":"2.0","id":1,"method":"block"}"#)
        client.send(#"{"jsonrpc":"2.0","id":2,"method":"wait"}"#)
        begin(2)
        DispatchQueue(label: "gate").asyncAfter(deadline: .now() + .milliseconds(100)) { [gate] in gate.signal() }
        let start = ContinuousClock.now
        await server.stop(grace: .seconds(3))
        #expect(ContinuousClock.now - start < .seconds(300))
        #expect(client.answer()?["id"] == 1)
        #expect(client.answer() == nil)
    }

    @Test func `the client side gives results and errors as the host did`() async throws {
        let server = try server()
        let host = try AttachedHost(path: path)
        #expect(try await host.list() == [["name": "A"]])
        #expect(try await host.call("A", "b", ["x": 1], timeout: .seconds(1.5)) == ["A", "b", ["x": 1], 1.5])
        #expect(try await host.open("u", [:], isLocal: true, timeout: nil) == ["u", [:], true])
        let error = await #expect(throws: PluginError.self) {
            try await host.call("missing", "b", [:], timeout: nil)
        }
        #expect(error == PluginError(.unknownTarget, "There is no target missing."))
        await server.stop()
        let gone = await #expect(throws: PluginError.self) { try await host.list() }
        #expect(gone?.code == .hostStopped)
        #expect(throws: PluginError.self) { try AttachedHost(path: path) }
    }
}

/// A client that speaks plain lines.
private final class Client: Sendable {
    private let descriptor: CInt
    private let received = Mutex<[UInt8]>([])

    init(_ path: String) throws {
        descriptor = UnixSocket.make()
        try #require(UnixSocket.connect(descriptor, to: path) == 0)
        var patience = timeval(tv_sec: 10, tv_usec: 0)
        setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &patience, socklen_t(MemoryLayout<timeval>.size))
    }

    deinit { close(descriptor) }

    func send(_ line: String) { write(line + "\n") }

    func write(_ text: String) {
        var rest = Array(text.utf8)[...]
        while !rest.isEmpty {
            let count = rest.withUnsafeBytes { Glibc.send(descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL)) }
            guard count > 0 else { return }
            rest.removeFirst(count)
        }
    }

    func endInput() { shutdown(descriptor, Int32(SHUT_WR)) }
    func hangUp() { shutdown(descriptor, Int32(SHUT_RDWR)) }

    /// The next line; nil at the end, or after ten seconds.
    func answer() -> Value? {
        received.withLock { received in
            while true {
                if let end = received.firstIndex(of: UInt8(ascii: "\n")) {
                    defer { received.removeFirst(end + 1) }
                    return try? Value(json: String(decoding: received[..<end], as: UTF8.self))
                }
                var chunk = [UInt8](repeating: 0, count: 64 << 10)
                let count = recv(descriptor, &chunk, chunk.count, 0)
                guard count > 0 else { return nil }
                received += chunk[..<count]
            }
        }
    }
}
