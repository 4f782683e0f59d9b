import Foundation
import Testing

private let isWanted =
    ProcessInfo.processInfo.environment["GATEWAY_MEASURES_FLEET"] != nil && hasEtcd && geteuid() == 0

/// Measures the effect of more hosts with the program `wrk`, and prints a table. Requires a quiet machine and a release
/// build; `GATEWAY_PROGRAM` is the path of the program of the hosts.
@Suite(.enabled(if: isWanted, "Set GATEWAY_MEASURES_FLEET, as root, with haproxy, etcd, ip and wrk."))
struct MeasureFleet {
    @Test func `requests and processor time with one, two and three hosts`() async throws {
        let lab = try await Lab()
        #expect(await becomesTrue { try await lab.areAllUp() })
        let script = "\(lab.folder)/post.lua"
        try """
        wrk.method = "POST"
        wrk.body = "{\\"id\\": 1}"
        wrk.headers["Content-Type"] = "application/json"
        wrk.headers["Authorization"] = "Bearer \(Lab.token)"
        """.write(toFile: script, atomically: true, encoding: .utf8)
        var table = "hosts | requests/s | processor time per request: hosts, HAProxy, client (µs)\n"
        for count in [1, 2, 3] {
            for (number, host) in Network.hosts.enumerated() {
                _ = try lab.tellBalancer("set server gateways/\(host) state \(number < count ? "ready" : "maint")")
            }
            let children = Network.hosts.compactMap { lab.hosts[$0] } + [lab.balancer].compactMap(\.self)
            let before = try children.map { try $0.processorTime() }
            let url = "\(lab.address)/call/Shop/look"
            let wrk = try await Program.run([
                "bash", "-c", "TIMEFORMAT='client %U %S'; time wrk -t1 -c32 -d5s -s '\(script)' '\(url)'",
            ]).output
            let used = try zip(children, before).map { try $0.processorTime() - $1 }
            let lines = wrk.split(separator: "\n").map { $0.split(separator: " ") }
            let rate = lines.first { $0.first == "Requests/sec:" }?.last.flatMap { Double($0) }
            let total = lines.first { $0.count > 2 && $0[1] == "requests" }?.first.flatMap { Double($0) }
            let client = lines.first { $0.first == "client" }?.dropFirst().compactMap { Double($0) }.reduce(0, +)
            guard let rate, let total, let client else { throw Failed(text: wrk) }
            #expect(!wrk.contains("Non-2xx"), "\(wrk)")
            let times = [used.dropLast().reduce(0, +), used.last ?? 0, client].map { "\(Int($0 / total * 1e6))" }
            table += "\(count) | \(Int(rate)) | \(times.joined(separator: ", "))\n"
        }
        print(table)
    }
}

extension Child {
    /// The processor time that the process has used, in seconds.
    fileprivate func processorTime() throws -> Double {
        let text = try String(contentsOfFile: "/proc/\(id)/stat", encoding: .utf8)
        // The name of the program, in parentheses, can contain spaces.
        let fields = text.split(separator: ")").last?.split(separator: " ") ?? []
        guard fields.count > 12, let user = Double(fields[11]), let system = Double(fields[12]) else {
            throw Failed(text: text)
        }
        return (user + system) / Double(sysconf(Int32(_SC_CLK_TCK)))
    }
}
