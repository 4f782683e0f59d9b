import Dispatch
import FoundationEssentials
import Glibc
import PluginABI
import PluginHost
import Synchronization
import Testing

@testable import PluginHostCLI
@testable import TestSupport

// How many calls, lines and clients a server accepts.

extension ControlServerTests {
    @Test func `calls over the limit are refused at once, but never the first call of another client`() async throws {
        var limits = ControlServer.Limits()
        limits.calls.shared = 2
        let server = try server(limits: limits)
        let client = try SocketClient(path)
        for id in 0..<5 { client.send(#"{"jsonrpc":"2.0","id":\#(id),"method":"block"}"#) }
        // The client gets its own slot and half of the shared ones.
        begin(2)
        let refused = (0..<3).compactMap { _ in client.answer()?["error"]?["data"]?["code"]?.string }
        #expect(refused == ["overloaded", "overloaded", "overloaded"])
        let other = try SocketClient(path)
        other.send(#"{"jsonrpc":"2.0","id":1,"method":"echo"}"#)
        #expect(other.answer()?["id"] == 1)
        // The host's own methods need no slot.
        client.send(#"{"jsonrpc":"2.0","id":9,"method":"list"}"#)
        let list = client.answer()
        #expect(list?["id"] == 9 && list?["result"] == [["name": "A"]])
        open(2)
        #expect(Set((0..<2).compactMap { _ in client.answer()?["id"]?.int }).count == 2)
        server.stop()
    }

    @Test func `a waiting call gets the slot of one that ends`() async throws {
        var limits = ControlServer.Limits()
        limits.calls.shared = 1
        limits.calls.patience = .seconds(600)
        let server = try server(limits: limits)
        let client = try SocketClient(path)
        for id in 0..<4 { client.send(#"{"jsonrpc":"2.0","id":\#(id),"method":"block"}"#) }
        begin(2)
        open(4)
        #expect(Set((0..<4).compactMap { _ in client.answer()?["id"]?.int }) == Set(0..<4))
        server.stop()
    }

    @Test func `unterminated lines are limited in total, and the oldest one is refused`() async throws {
        var limits = ControlServer.Limits()
        limits.receivedBytesInAll = 1 << 20
        let server = try server(limits: limits)
        let clients = try (0..<4).map { _ in try SocketClient(path) }
        for client in clients {
            client.write(String(repeating: "x", count: 300 << 10))
            usleep(100_000)
        }
        #expect(clients[0].answer()?["error"]?["message"]?.string?.contains("1048576 bytes") == true)
        // No input of the other clients is lost.
        clients[3].write("\n")
        #expect(clients[3].answer()?["error"]?["code"] == -32700)
        server.stop()
    }

    @Test func `a line that does not end in time is refused`() async throws {
        var limits = ControlServer.Limits()
        limits.lineTime = .milliseconds(200)
        let server = try server(limits: limits)
        let client = try SocketClient(path)
        client.write("{")
        #expect(client.answer()?["error"]?["message"]?.string?.contains("has not ended") == true)
        server.stop()
    }

    @Test(arguments: [0, 1])
    func `a client over the limit replaces an idle one, uses the reserve, or is refused`(reserve: Int)
        async throws
    {
        var limits = ControlServer.Limits()
        (limits.connections, limits.reserve) = (2, reserve)
        let server = try server(limits: limits)
        let idle = try SocketClient(path)
        idle.send(#"{"jsonrpc":"2.0","id":1,"method":"echo"}"#)
        #expect(idle.answer()?["id"] == 1)
        let busy = try (0..<2).map { _ in try SocketClient(path) }
        for client in busy { client.send(#"{"jsonrpc":"2.0","id":1,"method":"block"}"#) }
        begin(2)
        #expect(idle.answer() == nil)
        let last = try SocketClient(path)
        if reserve > 0 { last.send(#"{"jsonrpc":"2.0","id":1,"method":"call"}"#) }
        let error = last.answer()?["error"]
        #expect(error?["data"]?["code"] == "overloaded" && error?["message"]?.string?.contains("2 clients") == true)
        if reserve > 0 {
            last.send(#"{"jsonrpc":"2.0","id":2,"method":"list"}"#)
            #expect(last.answer()?["result"]?.list?.count == 1)
        }
        open(2)
        #expect(busy.allSatisfy { $0.answer()?["id"] == 1 })
        server.stop()
    }

    @Test func `of several idle clients, the one that has been idle for longest is disconnected`() async throws {
        var limits = ControlServer.Limits()
        limits.connections = 3
        let server = try server(limits: limits)
        func ask(_ client: SocketClient) -> Value? {
            client.send(#"{"jsonrpc":"2.0","id":1,"method":"echo"}"#)
            return client.answer()?["id"]
        }
        let clients = try (0..<3).map { _ in try SocketClient(path) }
        for client in clients + [clients[0]] { #expect(ask(client) == 1) }
        let fourth = try SocketClient(path)
        #expect(ask(fourth) == 1)
        #expect(ask(clients[0]) == 1 && ask(clients[2]) == 1 && ask(clients[1]) == nil)
        server.stop()
    }
}
