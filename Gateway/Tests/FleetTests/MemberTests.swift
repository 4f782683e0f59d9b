import Foundation
import PluginABI
import Testing

@testable import PluginGatewayFleet

@Suite(.enabled(if: hasEtcd, "The tests of fleets need etcd."))
struct MemberTests {
    @Test func `a host says what it serves, and keeps saying it after its lease was lost`() async throws {
        let fleet = try await TestFleet()
        let member = try await fleet.start("host1")
        #expect(await becomesTrue { try await fleet.control.snapshot().hosts["host1"] != nil })
        let record = try #require(try await fleet.control.snapshot().hosts["host1"])
        #expect(record.state == .ready && record.address == "host1:80")
        let release = try fleet.release("1.0.0")
        #expect(record.modules.map(\.release.digest) == [release.digest])
        let lease = try #require(try await fleet.client.get(fleet.keys.host("host1"))).lease
        try await fleet.client.revoke(lease)
        #expect(await becomesTrue { try await fleet.control.snapshot().hosts["host1"] != nil })
        #expect(member.gateway.isReady)
        try await member.end()
        #expect(try await fleet.control.snapshot().hosts["host1"] == nil)
    }

    @Test func `a rollout goes over all hosts, and is desired afterwards`() async throws {
        let fleet = try await TestFleet()
        let members = [try await fleet.start("host1"), try await fleet.start("host2")]
        #expect(await becomesTrue { try await fleet.control.snapshot().hosts.count == 2 })
        let release = try fleet.release("1.1.0")
        _ = try await fleet.rollOut(release, soak: 0.4)
        var most = 0
        _ = await becomesTrue {
            guard let record = try await fleet.control.snapshot().rollout else { return false }
            most = max(most, record.steps.values.count { $0.state != .done })
            return !record.isActive
        }
        #expect(most == 1, "Hosts replace the module one after the other.")
        let end = try #require(try await fleet.end())
        #expect(end.state == .done && end.steps.values.allSatisfy { $0.state == .done })
        #expect(members.map(\.version) == ["1.1.0", "1.1.0"])
        #expect(try await fleet.control.snapshot().desired["Good"] == release)
        #expect(members.allSatisfy { $0.gateway.isReady })
        // By hand, it is rolled back even then.
        _ = try await fleet.control.rollBack(reason: "no good")
        #expect(try await fleet.end()?.state == .rolledBack)
        #expect(members.map(\.version) == ["1.0.0", "1.0.0"])
        for member in members { try await member.end() }
    }

    @Test func `a file that is missing, or has another digest or version, changes nothing`() async throws {
        let fleet = try await TestFleet()
        let member = try await fleet.start("host1")
        #expect(await becomesTrue { try await fleet.control.snapshot().hosts.count == 1 })
        var wrong = try fleet.release("1.1.0")
        wrong.digest = String(repeating: "0", count: 64)
        var missing = try fleet.release("1.1.0")
        missing.file = "Absent.so"
        var other = try fleet.release("1.1.0")
        other.version = "1.2.0"
        for (release, reason) in [
            (wrong, "It is not used."), (missing, "Absent.so does not exist."), (other, "is Good 1.1.0, not 1.2.0."),
        ] {
            _ = try await fleet.rollOut(release)
            let end = try #require(try await fleet.end())
            #expect(end.state == .rolledBack)
            #expect(end.reason?.contains(reason) == true, "\(end.reason ?? "")")
            #expect(member.version == "1.0.0")
            #expect(try FileManager.default.contentsOfDirectory(atPath: member.plugins) == ["good.so"])
            #expect(member.gateway.isReady)
        }
        try await member.end()
    }

    @Test func `a file that does not start is rolled back`() async throws {
        let fleet = try await TestFleet()
        let members = [try await fleet.start("host1"), try await fleet.start("host2")]
        #expect(await becomesTrue { try await fleet.control.snapshot().hosts.count == 2 })
        try "no module".write(toFile: "\(fleet.folder)/store/Junk.so", atomically: true, encoding: .utf8)
        let junk = ModuleRelease(
            version: "2.0.0", digest: try FleetControl.digest(ofFile: "\(fleet.folder)/store/Junk.so"), file: "Junk.so")
        _ = try await fleet.rollOut(junk)
        let end = try #require(try await fleet.end())
        #expect(end.state == .rolledBack && end.steps.count == 1, "\(end)")
        #expect(end.reason?.contains("does not start") == true)
        #expect(members.map(\.version) == ["1.0.0", "1.0.0"])
        for member in members {
            // The old file is back.
            let digest = try ModuleFiles.digest("\(member.plugins)/good.so")
            #expect(digest == (try fleet.release("1.0.0").digest))
            try await member.end()
        }
    }

    @Test func `a second rollout is refused, and names the first`() async throws {
        let fleet = try await TestFleet()
        let member = try await fleet.start("host1")
        #expect(await becomesTrue { try await fleet.control.snapshot().hosts.count == 1 })
        let release = try fleet.release("1.1.0")
        _ = try await fleet.rollOut(release, soak: 600)
        await #expect { try await fleet.rollOut(try fleet.release("1.0.0")) } throws: {
            "\($0)".contains("The rollout of Good 1.1.0") && $0 is FleetError
        }
        #expect(await becomesTrue { member.version == "1.1.0" })
        _ = try await fleet.control.rollBack(reason: "enough")
        #expect(try await fleet.end()?.state == .rolledBack)
        #expect(member.version == "1.0.0")
        await #expect(throws: FleetError.self) { try await fleet.control.pause() }
        try await member.end()
    }

    @Test func `two rollouts at the same moment are one`() async throws {
        let fleet = try await TestFleet()
        let member = try await fleet.start("host1")
        #expect(await becomesTrue { try await fleet.control.snapshot().hosts.count == 1 })
        let (control, release) = (fleet.control, try fleet.release("1.1.0"))
        let begun = await withTaskGroup { group in
            for _ in 0..<8 {
                group.addTask {
                    try? await control.rollOut("Good", release, drain: 0, soak: 600, limits: .init())
                }
            }
            return await group.reduce(into: [RolloutRecord]()) { if let record = $1 { $0.append(record) } }
        }
        #expect(begun.count == 1)
        _ = try await control.rollBack(reason: "enough")
        #expect(try await fleet.end()?.state == .rolledBack)
        try await member.end()
    }

    @Test func `a paused rollout waits before the next host`() async throws {
        let fleet = try await TestFleet()
        let members = [try await fleet.start("host1"), try await fleet.start("host2")]
        #expect(await becomesTrue { try await fleet.control.snapshot().hosts.count == 2 })
        _ = try await fleet.rollOut(try fleet.release("1.1.0"), soak: 0.5)
        #expect(await becomesTrue { members.contains { $0.version == "1.1.0" } })
        _ = try await fleet.control.pause()
        #expect(
            await becomesTrue { try await fleet.control.snapshot().rollout?.steps.values.map(\.state) == [.done] })
        #expect(await becomesTrue { try await fleet.control.snapshot().lockHolder == nil })
        #expect(members.count { $0.version == "1.1.0" } == 1)
        _ = try await fleet.control.resume()
        #expect(try await fleet.end()?.state == .done)
        for member in members { try await member.end() }
    }

    @Test func `the next host continues when one dies in its step`() async throws {
        let fleet = try await TestFleet()
        // A host that has taken the lock, and then gives no sign of life.
        let (client, keys, release) = (fleet.client, fleet.keys, try fleet.release("1.1.0"))
        let lease = try await client.grantLease(600)
        let dead = HostRecord(name: "host0", address: "host0:80", state: .ready, modules: [], problem: nil)
        try await client.put(keys.host("host0"), Array(dead.json.json.utf8), lease: lease)
        try await client.put(keys.lock, Array("host0".utf8), lease: lease)
        let member = try await fleet.start("host1")
        #expect(await becomesTrue { try await fleet.control.snapshot().hosts.count == 2 })
        var record = RolloutRecord(id: "r", module: "Good", release: release, drain: 0, soak: 0, limits: .init())
        record.steps["host0"] = .init(state: .replacing)
        try await client.put(keys.rollout, Array(record.json.json.utf8))
        #expect(member.version == "1.0.0")
        // Its lease ends.
        try await client.revoke(lease)
        #expect(await becomesTrue { try await fleet.control.snapshot().rollout?.steps["host1"]?.state == .done })
        _ = try await fleet.control.resume(without: "host0")
        #expect(try await fleet.end()?.state == .done)
        #expect(member.version == "1.1.0")
        try await member.end()
    }

    @Test func `a host that starts serves what is desired before it is ready`() async throws {
        let fleet = try await TestFleet()
        let release = try fleet.release("1.1.0")
        try await fleet.client.put(fleet.keys.desired("Good"), Array(release.json.json.utf8))
        let member = try await fleet.start("host1")
        #expect(member.version == "1.1.0")
        // A change of the desired version is followed later, too.
        try await fleet.client.put(
            fleet.keys.desired("Good"), Array(try fleet.release("1.0.0").json.json.utf8))
        #expect(await becomesTrue { member.version == "1.0.0" })
        // A version whose file is missing is reported, and the present one continues to serve.
        let absent = ModuleRelease(version: "3.0.0", digest: String(repeating: "1", count: 64), file: "Absent.so")
        try await fleet.client.put(fleet.keys.desired("Good"), Array(absent.json.json.utf8))
        #expect(
            await becomesTrue {
                try await fleet.control.snapshot().hosts["host1"]?.problem?.contains("Absent.so does not exist") == true
            })
        #expect(member.version == "1.0.0" && member.gateway.isReady)
        try await member.end()
    }

    @Test func `without etcd, a host serves what it has`() async throws {
        let fleet = try await TestFleet()
        fleet.etcd.child.send(SIGSTOP)
        let member = try await fleet.start("host1") { $0.joinTimeout = .milliseconds(200) }
        #expect(member.version == "1.0.0" && member.log.contains("The fleet is not known at the start"))
        fleet.etcd.child.send(SIGCONT)
        #expect(await becomesTrue { try await fleet.control.snapshot().hosts["host1"] != nil })
        fleet.etcd.child.end()
        #expect(await becomesTrue { member.log.contains("this host serves what it has: ") })
        #expect(member.gateway.isReady)
        try await fleet.etcd.restart()
        #expect(await becomesTrue { try await fleet.control.snapshot().hosts["host1"] != nil })
        #expect(await becomesTrue { member.log.contains("The fleet is known again.") })
        try await member.end()
    }

    @Test func `garbage under the keys is reported and ignored`() async throws {
        let fleet = try await TestFleet()
        let (client, keys) = (fleet.client, fleet.keys)
        let garbage: [(String, [UInt8])] = [
            (keys.rollout, Array("{\"id\": \"1\"}".utf8)), (keys.host("host9"), [0xFF, 0xFE]),
            (keys.host("a/b"), Array("{}".utf8)), (keys.desired("Good"), Array("{\"version\": 1}".utf8)),
            (keys.desired("\u{1b}[2J"), Array("{}".utf8)), (keys.lock, Array("\u{1b}]0;x".utf8)),
            (keys.desired("Deep"), [UInt8](repeating: UInt8(ascii: "["), count: 100_000)),
            (keys.all + "more", Array("x".utf8)),
        ]
        for (key, value) in garbage { try await client.put(key, value) }
        let member = try await fleet.start("host1")
        #expect(await becomesTrue { try await fleet.control.snapshot().hosts["host1"] != nil })
        let snapshot = try await fleet.control.snapshot()
        #expect(snapshot.problems.count == 7, "\(snapshot.problems)")
        #expect(snapshot.problems.allSatisfy { $0 == $0.clean } && !snapshot.json.json.contains("\u{1b}"))
        #expect(member.log.contains("is ignored"))
        await #expect { try await fleet.rollOut(try fleet.release("1.1.0")) } throws: {
            "\($0)".contains("etcdctl del test/rollout")
        }
        _ = try await client.transact([.delete(keys.rollout), .delete(keys.lock)])
        _ = try await fleet.rollOut(try fleet.release("1.1.0"))
        #expect(try await fleet.end()?.state == .done)
        #expect(member.version == "1.1.0")
        try await member.end()
    }

    @Test func `a name that another host has is refused`() async throws {
        let fleet = try await TestFleet()
        let first = try await fleet.start("host1")
        #expect(await becomesTrue { try await fleet.control.snapshot().hosts.count == 1 })
        let second = try await fleet.start("host1") { $0.address = "elsewhere:80" }
        #expect(await becomesTrue { second.log.contains("Another host, at host1:80, has the name “host1”.") })
        #expect(second.gateway.isReady)
        try await first.end()
        #expect(await becomesTrue { try await fleet.control.snapshot().hosts["host1"]?.address == "elsewhere:80" })
        try await second.end()
    }

    @Test func `modules that have not started are replaced, too`() async throws {
        let fleet = try await TestFleet()
        let member = try await fleet.start("host1", isLazy: true)
        #expect(member.gateway.host.modules.map(\.state) == [.registered])
        #expect(await becomesTrue { try await fleet.control.snapshot().hosts.count == 1 })
        _ = try await fleet.rollOut(try fleet.release("1.1.0"))
        #expect(try await fleet.end()?.state == .done)
        #expect(member.version == "1.1.0")
        #expect(member.gateway.host.modules.map(\.state) == [.registered])
        _ = try await fleet.control.rollBack(reason: "no good")
        #expect(try await fleet.end()?.state == .rolledBack)
        #expect(member.version == "1.0.0")
        try await member.end()
    }

    @Test func `a host that cannot roll back says so, and serves on`() async throws {
        let fleet = try await TestFleet()
        let member = try await fleet.start("host1")
        #expect(await becomesTrue { try await fleet.control.snapshot().hosts.count == 1 })
        _ = try await fleet.rollOut(try fleet.release("1.1.0"))
        #expect(try await fleet.end()?.state == .done)
        // Neither the kept files nor the one in the store exist any more.
        try FileManager.default.removeItem(atPath: "\(member.plugins)/.fleet-before-Good")
        try FileManager.default.removeItem(atPath: "\(member.folder)/state")
        try FileManager.default.removeItem(atPath: "\(fleet.folder)/store/Good-1.0.0.so")
        _ = try await fleet.control.rollBack(reason: "no good")
        let end = try #require(try await fleet.end())
        #expect(end.state == .failed && end.steps["host1"]?.state == .failed, "\(end)")
        #expect(member.version == "1.1.0" && member.gateway.isReady)
        #expect(
            await becomesTrue {
                try await fleet.control.snapshot().hosts["host1"]?.problem?.contains("Good cannot be rolled back")
                    == true
            })
        try await member.end()
    }
}
