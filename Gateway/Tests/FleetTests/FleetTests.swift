import Foundation
import PluginABI
import PluginGatewayFleet
import PluginHost
import Testing

private let isPossible =
    hasEtcd && ProcessInfo.processInfo.environment["GATEWAY_SKIPS_BALANCER"] == nil && geteuid() == 0

/// Three hosts in network namespaces, under load, while hosts come and go and modules are rolled out.
@Suite(.enabled(if: isPossible, "The test of a fleet behind HAProxy needs root, haproxy, etcd and ip."))
struct FleetTests {
    @Test func `under load, hosts are killed, drained and upgraded, and nothing is lost or done twice`() async throws {
        let lab = try await Lab()
        #expect(await becomesTrue { try await lab.areAllUp() })
        let load = Load(lab.address)
        #expect(await load.more(100))

        // A version is rolled out.
        let options = ["--drain", "2", "--minimum-calls", "10"]
        let first = try await lab.fleet(["rollout", "Shop", "1.1.0", "--soak", "1"] + options)
        let firstEnd = now()
        #expect(first.status == 0, "\(first.output) \(lab.logs)")
        #expect(await load.more(100))

        // Meanwhile, the balancer has taken each host out at least once.
        let counts = try await lab.balancerCounts()
        for host in Network.hosts { #expect(Int(counts["gateways/\(host)"]?["chkdown"] ?? "") ?? 0 > 0) }

        // A host is killed during a request that is not idempotent, and returns.
        #expect(
            await becomesTrue {
                guard let last = lab.lines(of: "host2").last, last.what == "did", last.number % 3 == 0 else {
                    return false
                }
                return !load.all.contains { $0.id == last.number }
            })
        let killed = now()
        lab.hosts["host2"]?.send(SIGKILL)
        #expect(await load.more(300))
        #expect(await becomesTrue { try await lab.control.snapshot().hosts["host2"] == nil })
        try lab.start("host2")
        try await lab.waitUntilReady()

        // A host drains, and returns.
        lab.hosts["host3"]?.send(SIGTERM)
        #expect(await lab.hosts["host3"]?.status() == 0)
        try lab.start("host3")
        try await lab.waitUntilReady()
        #expect(await becomesTrue { try await lab.areAllUp() })

        // A broken version is rolled back by itself.
        let second = try await lab.fleet(["rollout", "Shop", "1.2.0", "--soak", "30"] + options)
        let secondEnd = now()
        #expect(second.status == 2, "\(second.output)")
        #expect(second.output.contains("calls failed; the limit is"), "\(second.output)")
        let afterwards = try await lab.control.snapshot()
        #expect(afterwards.rollout?.state == .rolledBack)
        #expect(afterwards.rollout?.steps.count == 1)
        for host in afterwards.hosts.values { #expect(host.modules.first?.release.version == "1.1.0") }
        #expect(await load.more(100))

        let page = try Value(json: try await lab.get("/page/fleet", of: "host1"))
        #expect(page["isKnown"] == true && page["self"] == "host1" && page["hosts"]?.map?.count == 3)
        #expect(page["rollout"]?["state"] == "rolledBack")

        // etcd hangs, vanishes, and returns.
        lab.etcd.child.send(SIGSTOP)
        #expect(await load.more(200))
        lab.etcd.child.end()
        #expect(await load.more(100))
        #expect(try await lab.fleet(["status"]).status == 1)
        #expect(try Value(json: try await lab.get("/page/fleet", of: "host1"))["isKnown"] == false)
        try await lab.etcd.restart()
        try await lab.waitUntilReady()

        // A host is killed during its step. The others go on, and it follows.
        let third = try await lab.fleet(["rollout", "Shop", "1.3.0", "--soak", "1", "--no-wait"] + options)
        #expect(third.status == 0, "\(third.output)")
        var victim: String?
        // Not host1, whose counters are compared in the end.
        _ = await becomesTrue {
            let snapshot = try await lab.control.snapshot()
            victim = snapshot.lockHolder == "host1" ? nil : snapshot.lockHolder
            return victim.map { snapshot.rollout?.steps[$0]?.state == .replacing } ?? false
        }
        let dying = try #require(victim)
        let killedAgain = now()
        lab.hosts[dying]?.send(SIGKILL)
        _ = await lab.hosts[dying]?.status()
        try lab.start(dying)
        let isDone = await becomesTrue {
            let snapshot = try await lab.control.snapshot()
            let versions = snapshot.hosts.values.map { $0.modules.first?.release.version }
            return snapshot.rollout?.state == .done && versions == ["1.3.0", "1.3.0", "1.3.0"]
        }
        #expect(isDone, "\(lab.logs)")
        let thirdEnd = now()
        #expect(await load.more(100))
        let requests = await load.end()

        // Each request is answered. No idempotent request is lost, and no other is executed twice.
        let lines = Network.hosts.map { host in (host: host, lines: lab.lines(of: host)) }
        var times: [Int: Int] = [:]
        for host in lines { for line in host.lines where line.what == "did" { times[line.number, default: 0] += 1 } }
        // (An answer that breaks off with its host counts: the balancer cannot repeat its request.)
        let silent = requests.filter { $0.status == nil && $0.server == nil }
        #expect(silent.isEmpty, "\(killed) \(silent.prefix(5))")
        let broken = requests.filter {
            $0.broken != nil && abs($0.begin - killed) > 5000 && abs($0.begin - killedAgain) > 5000
        }
        #expect(broken.isEmpty, "\(broken.prefix(5))")
        let lost = requests.filter { $0.isIdempotent && $0.answer == nil && !$0.isBroken }
        #expect(lost.isEmpty, "\(killed) \(lost.prefix(5))")
        let twice = requests.filter { !$0.isIdempotent && times[$0.id, default: 0] > 1 }
        #expect(twice.isEmpty, "\(twice.prefix(5))")
        let undone = requests.filter { ($0.answer != nil || $0.isBroken) && times[$0.id, default: 0] == 0 }
        #expect(undone.isEmpty, "\(undone.prefix(5))")
        // A request that is not idempotent can only be lost with a host that was killed.
        let failed = requests.filter { !$0.isIdempotent && $0.answer == nil && !$0.isBroken }
        let strange = failed.filter { abs($0.begin - killed) > 5000 && abs($0.begin - killedAgain) > 5000 }
        #expect(strange.isEmpty, "\(strange.prefix(5))")
        #expect(failed.contains { times[$0.id] == 1 }, "No request was lost with the host that was killed during one.")

        // Each answer comes from the host that HAProxy reports, and from a version that the host served at that time.
        let wrong = requests.filter { request in
            guard let answer = request.answer else { return false }
            let serves = lines.contains { host, lines in
                host == answer.host && Self.served(lines, answer.version, request.begin...request.end)
            }
            return answer.host != request.server || !serves
        }
        #expect(wrong.isEmpty, "\(wrong.prefix(5))")
        let old = requests.filter { request in
            guard let version = request.answer?.version else { return request.isBroken && request.begin > secondEnd }
            return request.begin > thirdEnd && version != "1.3.0"
                || request.begin > firstEnd && version == "1.0.0" || request.end < firstEnd && version > "1.1.0"
        }
        #expect(old.isEmpty, "\(old.prefix(5))")

        try await compareCounters(lab, requests)
    }

    /// Whether a version served at some time within a range.
    private static func served(
        _ lines: [(what: String, version: String, number: Int)], _ version: String, _ time: ClosedRange<Int>
    ) -> Bool {
        var up: Int?
        for line in lines where line.version == version && line.what != "did" {
            // A host that was killed did not record the end of the version, with which its next life begins.
            if let begin = up, begin <= time.upperBound, line.number >= time.lowerBound { return true }
            up = line.what == "up" ? line.number : nil
        }
        return up.map { $0 <= time.upperBound } ?? false
    }

    /// Compares the counts of the client, the balancer, the hosts and the modules.
    private func compareCounters(_ lab: Lab, _ requests: [Load.Request]) async throws {
        let balancer = try await lab.balancerCounts()
        func count(_ row: String, _ name: String) -> Int { Int(balancer[row]?[name] ?? "") ?? 0 }
        let sent = requests.count + requests.count { $0.broken != nil }
        #expect(count("shop/FRONTEND", "req_tot") == sent)
        // One connection for each request, and for each repetition. (HAProxy 2.6 counts one after a 502 twice.)
        let (made, repeated) = (count("once/BACKEND", "connect"), count("once/BACKEND", "wretr"))
        #expect(count("gateways/FRONTEND", "req_tot") == made)
        #expect((sent...(sent + repeated)).contains(made))
        // Answers by host. The counters of host1 are complete, since it was never restarted.
        for host in Network.hosts {
            let answered = requests.count { request in
                request.server == host
                    && (request.status.map { $0 != 502 && $0 != 503 } ?? !request.isIdempotent)
            }
            let broken = requests.count { $0.broken == host }
            #expect(count("gateways/\(host)", "hrsp_2xx") + count("gateways/\(host)", "hrsp_4xx") == answered + broken)
        }
        let done = lab.lines(of: "host1").count { $0.what == "did" }
        #expect(try await lab.calls(of: "host1") == done)
        #expect(count("gateways/host1", "hrsp_2xx") + count("gateways/host1", "hrsp_4xx") == done)
    }
}
