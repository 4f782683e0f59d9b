import Foundation
import Testing

@testable import PluginGatewayFleet

let hasEtcd = ProcessInfo.processInfo.environment["GATEWAY_SKIPS_FLEET"] == nil

@Suite(.enabled(if: hasEtcd, "The tests of fleets need etcd."))
struct EtcdTests {
    private func text(_ entry: EtcdEntry?) -> String? { entry.map { String(decoding: $0.value, as: UTF8.self) } }

    @Test func `keys are written, read, listed and compared`() async throws {
        let process = try await EtcdProcess()
        let etcd = try process.client()
        try await etcd.put("a/1", Array("one".utf8))
        try await etcd.put("a/2", Array("zwei ü\u{0}".utf8))
        try await etcd.put("b", [])
        let one = try #require(try await etcd.get("a/1"))
        #expect(text(one) == "one")
        #expect(one.created == one.modified)
        let list = try await etcd.transact([.list("a/", limit: 1), .list("a/", limit: 10), .get("c")])
        #expect(list?.map(\.count) == [2, 2, 0])
        #expect(list?.map(\.entries.count) == [1, 2, 0])
        #expect(try await etcd.transact(if: [.absent("a/1")], [.put("a/1", Array("x".utf8))]) == nil)
        let unchanged = EtcdCondition.unchanged("a/1", since: one.modified)
        #expect(try await etcd.transact(if: [unchanged], [.put("a/1", Array("y".utf8)), .delete("b")]) != nil)
        #expect(try await etcd.transact(if: [unchanged], [.delete("a/1")]) == nil)
        #expect(text(try await etcd.get("a/1")) == "y")
        #expect(try await etcd.get("b") == nil)
    }

    @Test func `the keys of a lease go with it`() async throws {
        let process = try await EtcdProcess()
        let etcd = try process.client()
        let lease = try await etcd.grantLease(600)
        try await etcd.put("held", [1], lease: lease)
        try await etcd.keepAlive(lease)
        #expect(try await etcd.transact(if: [.held("held", by: lease)], [.get("held")]) != nil)
        try await etcd.revoke(lease)
        #expect(try await etcd.get("held") == nil)
        await #expect { try await etcd.put("x", [], lease: lease) } throws: {
            ($0 as? EtcdError)?.code == .leaseNotFound
        }
        let short = try await etcd.grantLease(1)
        // The lease may have expired by now.
        try? await etcd.put("short", [1], lease: short)
        #expect(await becomesTrue { try await etcd.get("short") == nil })
        await #expect { try await etcd.keepAlive(short) } throws: { ($0 as? EtcdError)?.code == .leaseNotFound }
    }

    @Test func `a watch reports its beginning and each change`() async throws {
        let process = try await EtcdProcess()
        let etcd = try process.client()
        let (changes, continuation) = AsyncStream<Void>.makeStream()
        let watching = Task { try await etcd.watch("w/") { continuation.yield() } }
        var iterator = changes.makeAsyncIterator()
        await iterator.next()
        for _ in 0..<3 {
            try await etcd.put("w/x", [])
            await iterator.next()
        }
        process.child.end()
        await #expect(throws: EtcdError.self) { try await watching.value }
    }

    @Test func `the next endpoint is asked if one is gone or silent`() async throws {
        let process = try await EtcdProcess()
        let (gone, silent) = (try freePort(), try RawServer(nil))
        var configuration = EtcdConfiguration(
            endpoints: ["http://127.0.0.1:\(gone)", "http://127.0.0.1:\(silent.port)", process.url])
        configuration.timeout = .milliseconds(300)
        let etcd = try Etcd(configuration)
        #expect(try await etcd.get("x") == nil)
        // A change is not sent to a second endpoint if the first one may have made it.
        configuration.endpoints.swapAt(0, 1)
        let other = try Etcd(configuration)
        await #expect { try await other.put("x", []) } throws: { ($0 as? EtcdError)?.code == .unknown }
        configuration.endpoints = ["http://127.0.0.1:\(gone)"]
        let none = try Etcd(configuration)
        await #expect { try await none.put("x", []) } throws: { ($0 as? EtcdError)?.code == .unavailable }
    }

    private static let wrongAnswers = [
        "HTML": "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 6\r\n\r\n<html>",
        "another object": "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}",
        "half": "HTTP/1.1 200 OK\r\nContent-Length: 15\r\n\r\n{\"header\": null",
        "a redirection": "HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n",
        "too much": "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n500000\r\n"
            + String(repeating: " ", count: 5 << 20) + "\r\n0\r\n\r\n",
    ]

    @Test(arguments: wrongAnswers.keys.sorted()) func `an answer that is not one of etcd is an error`(
        kind: String
    ) async throws {
        let server = try RawServer(Self.wrongAnswers[kind])
        var configuration = EtcdConfiguration(endpoints: ["http://127.0.0.1:\(server.port)"])
        configuration.timeout = .seconds(20)
        let etcd = try Etcd(configuration)
        await #expect { try await etcd.get("x") } throws: { ($0 as? EtcdError)?.code == .invalidAnswer }
    }

    @Test func `a user has a password, and a token that is renewed`() async throws {
        let process = try await EtcdProcess()
        let admin = try process.client()
        _ = try await admin.ask("/v3/auth/user/add", ["name": "root", "password": "secret"], changes: true)
        _ = try await admin.ask("/v3/auth/user/grant", ["user": "root", "role": "root"], changes: true)
        _ = try await admin.ask("/v3/auth/enable", [:], changes: true)
        await #expect { try await admin.get("x") } throws: { ($0 as? EtcdError)?.code == .unauthenticated }
        let file = try makeFolder() + "/password"
        var configuration = EtcdConfiguration(endpoints: [process.url])
        (configuration.user, configuration.passwordFile) = ("root", file)
        let etcd = try Etcd(configuration)
        await #expect { try await etcd.get("x") } throws: { "\($0)".contains(file) }
        try "wrong\n".write(toFile: file, atomically: true, encoding: .utf8)
        await #expect { try await etcd.get("x") } throws: { ($0 as? EtcdError)?.code == .unauthenticated }
        try "secret\n".write(toFile: file, atomically: true, encoding: .utf8)
        #expect(try await etcd.get("x") == nil)
        // etcd forgets its tokens when it ends.
        try await process.restart(with: etcd)
        #expect(try await etcd.get("x") == nil)
    }

    @Test func `etcd is reached by TLS, with a certificate of the client`() async throws {
        let folder = try makeFolder()
        try run(
            "openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days",
            "2",
            "-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", "\(folder)/key.pem", "-out",
            "\(folder)/certificate.pem")
        var configuration = EtcdConfiguration(endpoints: [])
        configuration.certificateAuthority = "\(folder)/certificate.pem"
        (configuration.certificate, configuration.key) = ("\(folder)/certificate.pem", "\(folder)/key.pem")
        let process = try await EtcdProcess(tls: configuration)
        #expect(process.url.hasPrefix("https://"))
        let etcd = try process.client()
        try await etcd.put("x", [1])
        #expect(try await etcd.get("x")?.value == [1])
        for keyPath in [\EtcdConfiguration.certificateAuthority, \.certificate] {
            var other = configuration
            other.endpoints = [process.url]
            other[keyPath: keyPath] = nil
            let stranger = try Etcd(other)
            await #expect(throws: EtcdError.self) { try await stranger.get("x") }
        }
        configuration.endpoints = [process.url]
        configuration.certificateAuthority = "\(folder)/absent.pem"
        #expect(throws: EtcdError.self) { try Etcd(configuration) }
    }
}
