import Foundation
import PluginABI
import Testing

@testable import PluginGatewayFleet

/// Hosts and keys that come and go at bad moments.
@Suite(.enabled(if: hasEtcd, "The tests of fleets need etcd."))
struct HostileTests {
    @Test func `a rollout waits for a host that is away, until it is dropped`() async throws {
        let fleet = try await TestFleet()
        let members = [try await fleet.start("host1"), try await fleet.start("host2")]
        #expect(await becomesTrue { try await fleet.control.snapshot().hosts.count == 2 })
        let lease = try await fleet.pretend("host0")
        _ = try await fleet.rollOut(try fleet.release("1.1.0"))
        try await fleet.client.revoke(lease)
        #expect(
            await becomesTrue {
                try await fleet.control.snapshot().rollout?.steps.values.count { $0.state == .done } == 2
            })
        // The hosts look several times in the meantime.
        try await Task.sleep(for: .milliseconds(700))
        let snapshot = try await fleet.control.snapshot()
        #expect(snapshot.rollout?.state == .running && snapshot.missingHosts == ["host0"])
        #expect(snapshot.desired["Good"]?.version != "1.1.0")
        await #expect { try await fleet.control.resume(without: "host1") } throws: { "\($0)".contains("is known") }
        await #expect { try await fleet.control.resume(without: "x") } throws: { "\($0)".contains("does not wait") }
        _ = try await fleet.control.resume(without: "host0")
        #expect(try await fleet.end()?.state == .done)
        for member in members { try await member.end() }
    }

    @Test func `a step is not done that is rolled back while the host drains`() async throws {
        let fleet = try await TestFleet()
        let members = [try await fleet.start("host1"), try await fleet.start("host2")]
        #expect(await becomesTrue { try await fleet.control.snapshot().hosts.count == 2 })
        _ = try await fleet.control.rollOut(
            "Good", try fleet.release("1.1.0"), drain: 1, soak: 0, limits: .init())
        #expect(await becomesTrue { members.contains { !$0.gateway.isReady } })
        _ = try await fleet.control.rollBack(reason: "enough")
        #expect(try await fleet.end()?.state == .rolledBack)
        for member in members {
            #expect(!member.log.contains("Good 1.1.0"), "\(member.log)")
            #expect(member.version == "1.0.0")
            #expect(await becomesTrue { member.gateway.isReady })
            #expect(try FileManager.default.contentsOfDirectory(atPath: member.plugins) == ["good.so"])
            try await member.end()
        }
    }

    @Test func `a step is not done when the lock is lost while the host drains`() async throws {
        let fleet = try await TestFleet()
        let members = [try await fleet.start("host1"), try await fleet.start("host2")]
        #expect(await becomesTrue { try await fleet.control.snapshot().hosts.count == 2 })
        let stranger = try await fleet.client.grantLease(600)
        _ = try await fleet.control.rollOut(
            "Good", try fleet.release("1.1.0"), drain: 1, soak: 0, limits: .init())
        #expect(await becomesTrue { members.contains { !$0.gateway.isReady } })
        try await fleet.client.put(fleet.keys.lock, Array("other".utf8), lease: stranger)
        #expect(await becomesTrue { members.allSatisfy { $0.gateway.isReady } })
        #expect(members.map(\.version) == ["1.0.0", "1.0.0"])
        try await fleet.client.revoke(stranger)
        #expect(try await fleet.end()?.state == .done)
        for member in members { try await member.end() }
    }

    @Test func `the key of a host that was deleted or overwritten is written again`() async throws {
        let fleet = try await TestFleet()
        let member = try await fleet.start("host1")
        let (client, key) = (fleet.client, fleet.keys.host("host1"))
        #expect(await becomesTrue { try await client.get(key) != nil })
        let lease = try #require(try await client.get(key)).lease
        _ = try await client.transact([.delete(key)])
        #expect(await becomesTrue { try await client.get(key)?.lease == lease })
        try await client.put(key, Array("x".utf8))
        #expect(await becomesTrue { try await client.get(key)?.lease == lease })
        #expect(try await fleet.control.snapshot().hosts["host1"] != nil)
        try await member.end()
    }

    @Test func `a name and an address that another process has are refused`() async throws {
        let fleet = try await TestFleet()
        let first = try await fleet.start("host1")
        #expect(await becomesTrue { try await fleet.control.snapshot().hosts.count == 1 })
        let lease = try await fleet.client.get(fleet.keys.host("host1"))?.lease
        let second = try await fleet.start("host1")
        #expect(await becomesTrue { second.log.contains("Another host, at host1:80, has the name “host1”.") })
        #expect(try await fleet.client.get(fleet.keys.host("host1"))?.lease == lease)
        try await first.end()
        #expect(
            await becomesTrue {
                try await fleet.client.get(fleet.keys.host("host1")).map { $0.lease != lease } ?? false
            })
        try await second.end()
    }

    @Test func `the file of another module is not overwritten`() async throws {
        let fleet = try await TestFleet()
        var module = CModule(name: "More", version: "1.0.0")
        module.isSealed = true
        try copyFile(module.build(), to: "\(fleet.folder)/store/More-1.0.0.so")
        let release = ModuleRelease(
            version: "1.0.0", digest: try FleetControl.digest(ofFile: "\(fleet.folder)/store/More-1.0.0.so"),
            file: "More-1.0.0.so")
        let member = try await fleet.start("host1")
        #expect(await becomesTrue { try await fleet.control.snapshot().hosts.count == 1 })
        let path = "\(member.plugins)/More.so"
        try "not a module".write(toFile: path, atomically: true, encoding: .utf8)
        _ = try await fleet.control.rollOut("More", release, drain: 0, soak: 0, limits: .init())
        let end = try #require(try await fleet.end())
        #expect(end.state == .rolledBack && end.reason?.contains("Rename or remove it.") == true, "\(end)")
        #expect(try String(contentsOfFile: path, encoding: .utf8) == "not a module")
        // A file that does not start is removed when the host rolls back.
        unlink(path)
        try "no module, either".write(
            toFile: "\(fleet.folder)/store/More-2.0.0.so", atomically: true, encoding: .utf8)
        let junk = ModuleRelease(
            version: "2.0.0", digest: try FleetControl.digest(ofFile: "\(fleet.folder)/store/More-2.0.0.so"),
            file: "More-2.0.0.so")
        _ = try await fleet.control.rollOut("More", junk, drain: 0, soak: 0, limits: .init())
        #expect(try await fleet.end()?.state == .rolledBack)
        #expect(!FileManager.default.fileExists(atPath: path))
        try await member.end()
    }

    @Test func `a problem goes away with what was desired`() async throws {
        let fleet = try await TestFleet()
        let member = try await fleet.start("host1")
        let key = fleet.keys.desired("Good")
        let absent = ModuleRelease(version: "3.0.0", digest: String(repeating: "1", count: 64), file: "Absent.so")
        func problem() async throws -> String? { try await fleet.control.snapshot().hosts["host1"]?.problem }
        try await fleet.client.put(key, Array(absent.json.json.utf8))
        #expect(await becomesTrue { try await problem() != nil })
        try await fleet.client.put(key, Array(try fleet.release("1.0.0").json.json.utf8))
        #expect(
            await becomesTrue { try await fleet.control.snapshot().hosts["host1"].map { $0.problem == nil } ?? false })
        try await member.end()
    }

    @Test func `a host whose step has failed does not spin`() async throws {
        let fleet = try await TestFleet()
        let member = try await fleet.start("host1")
        #expect(await becomesTrue { try await fleet.control.snapshot().hosts.count == 1 })
        var record = RolloutRecord(
            id: "r", module: "Good", release: try fleet.release("1.1.0"), drain: 0, soak: 0, limits: .init())
        record.steps["host1"] = .init(state: .failed)
        try await fleet.client.put(fleet.keys.rollout, Array(record.json.json.utf8))
        #expect(
            await becomesTrue {
                try await fleet.control.snapshot().hosts["host1"]?.problem?.contains("End it with “fleet back”") == true
            })
        // The lock was never taken, and nothing else was written.
        let modified = try #require(try await fleet.client.get(fleet.keys.host("host1"))).modified
        try await Task.sleep(for: .milliseconds(700))
        try await fleet.client.put("other", [])
        #expect(try #require(try await fleet.client.get("other")).modified == modified + 1)
        _ = try await fleet.control.rollBack(reason: "enough")
        #expect(try await fleet.end()?.state == .failed)
        try await member.end()
    }

    @Test func `a host that joins late rolls back, too, or is named`() async throws {
        let fleet = try await TestFleet()
        let first = try await fleet.start("host1")
        #expect(await becomesTrue { try await fleet.control.snapshot().hosts.count == 1 })
        _ = try await fleet.rollOut(try fleet.release("1.1.0"))
        #expect(try await fleet.end()?.state == .done)
        let late = try await fleet.start("host2")
        #expect(late.version == "1.1.0")
        #expect(await becomesTrue { try await fleet.control.snapshot().hosts.count == 2 })
        _ = try await fleet.control.rollBack(reason: "no good")
        let end = try #require(try await fleet.end())
        #expect(end.state == .rolledBack)
        #expect(try await fleet.control.snapshot().desired["Good"] == (try fleet.release("1.0.0")))
        #expect(try await fleet.control.hostsLeft(by: end) == [])
        #expect(first.version == "1.0.0" && late.version == "1.0.0")
        // A host cannot follow a version that is not recorded.
        _ = try await fleet.client.transact([.delete(fleet.keys.desired("Good"))])
        _ = try await fleet.rollOut(try fleet.release("1.1.0"))
        #expect(try await fleet.end()?.state == .done)
        let last = try await fleet.start("host3")
        #expect(await becomesTrue { try await fleet.control.snapshot().hosts.count == 3 })
        unlink("\(fleet.folder)/store/Good-1.0.0.so")
        _ = try await fleet.control.rollBack(reason: "no good")
        let second = try #require(try await fleet.end())
        let left = try await fleet.control.hostsLeft(by: second)
        #expect(left.count == 1 && left.first?.hasPrefix("host3: ") == true, "\(left)")
        for member in [first, late, last] { try await member.end() }
    }

    @Test func `a rollout whose answer is lost is not said to have failed`() async throws {
        let fleet = try await TestFleet()
        let member = try await fleet.start("host1")
        #expect(await becomesTrue { try await fleet.control.snapshot().hosts.count == 1 })
        // The relay passes the answer to the first read on, but not the answer to the write, nor any later one.
        let relay = try Relay(to: fleet.etcd.url, answers: 1)
        var configuration = EtcdConfiguration(endpoints: ["http://127.0.0.1:\(relay.port)"])
        configuration.timeout = .milliseconds(300)
        let control = FleetControl(try Etcd(configuration), prefix: "test")
        let release = try fleet.release("1.1.0")
        await #expect {
            try await control.rollOut("Good", release, drain: 0, soak: 0, limits: .init())
        } throws: { error in
            (error as? EtcdError)?.code == .unknown && "\(error)".contains("It is unknown whether")
        }
        #expect(try await fleet.end()?.state == .done)
        try await member.end()
    }

    @Test func `large values do not hide the others`() async throws {
        let fleet = try await TestFleet()
        let large = [UInt8](repeating: UInt8(ascii: "x"), count: 1_400_000)
        for number in 0..<4 {
            try await fleet.client.put(fleet.keys.host("large\(number)"), large)
            try await fleet.client.put(fleet.keys.desired("Large\(number)"), large)
        }
        let member = try await fleet.start("host1")
        #expect(await becomesTrue { try await fleet.control.snapshot().hosts["host1"] != nil })
        let snapshot = try await fleet.control.snapshot()
        #expect(snapshot.problems.count == 8, "\(snapshot.problems)")
        #expect(snapshot.problems.contains { $0.contains("test/hosts/large0 is ignored") })
        _ = try await fleet.rollOut(try fleet.release("1.1.0"))
        #expect(try await fleet.end()?.state == .done)
        try await member.end()
    }

    @Test func `keys with large names do not hide the others`() async throws {
        let fleet = try await TestFleet()
        let large = String(repeating: "x", count: 1_300_000)
        for number in 0..<3 {
            try await fleet.client.put(fleet.keys.host("\(number)\(large)"), Array("{}".utf8))
        }
        // Not UTF-8.
        let bytes: [UInt8] = Array(fleet.keys.hosts.utf8) + [0xFF, 0x1B] + [UInt8](repeating: 0xFE, count: 2000)
        _ = try await fleet.client.ask(
            "/v3/kv/put", ["key": .string(Data(bytes).base64EncodedString()), "value": ""], changes: true)
        let member = try await fleet.start("host1") { $0.pollInterval = .seconds(5) }
        #expect(await becomesTrue { try await fleet.control.snapshot().hosts["host1"] != nil })
        let snapshot = try await fleet.control.snapshot()
        #expect(snapshot.problems.count == 4, "\(snapshot.problems)")
        #expect(snapshot.problems.allSatisfy { $0.count < 500 && !$0.contains("\u{1b}") })
        _ = try await fleet.rollOut(try fleet.release("1.1.0"))
        #expect(try await fleet.end()?.state == .done)
        try await member.end()
    }

    @Test func `copies that a killed host has left are removed when it joins`() async throws {
        let fleet = try await TestFleet()
        let member = try await fleet.start("host1", files: [".fleet-next-1", ".fleet-before-Good"])
        let files = try FileManager.default.contentsOfDirectory(atPath: member.plugins).sorted()
        #expect(files == [".fleet-before-Good", "good.so"])
        try await member.end()
    }
}
