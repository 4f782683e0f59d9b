import PluginABI
import PluginGateway
import Testing

extension Visit {
    /// The table of the hosts, and that of the rollout, follow what the host knows of its fleet.
    func showsAFleet(_ gateway: TestGateway) async throws {
        let (fleet, isHidden) = (text("#fleet-content"), "document.getElementById('fleet').hidden")
        try await becomes("\(isHidden) && document.getElementById('fleet-link').hidden")
        gateway.gateway.showFleet(record(state: "running", steps: ["host1": step("observing", calls: 12)]))
        try await becomes("!\(isHidden) && !document.getElementById('fleet-link').hidden")
        try await becomes("\(fleet).includes('2 hosts')")
        try await becomes("\(row("host1 (this one)")) === 'host1 (this one)|10.0.0.11:8080|ready|Shop 1.1.0|'")
        try await becomes("\(row("host2")) === 'host2|10.0.0.12:8080|starting|Shop 1.0.0|<img src=x onerror=1>'")
        try await becomes("\(fleet).includes('Rollout of Shop 1.1.0: running')")
        try await becomes("\(row("host1")) === 'host1|observing|12 calls, 0 failed|'")
        #expect(try await browser.run("return document.querySelectorAll('#fleet img').length") == 0)
        // It is rolled back while etcd is away.
        let steps: Value = ["host1": step("rolledBack", calls: 30), "host3": step("failed", calls: 0)]
        gateway.gateway.showFleet(record(state: "rollingBack", steps: steps, isKnown: false))
        try await becomes("\(fleet).includes('Rollout of Shop 1.1.0: rolling back')")
        try await becomes("\(fleet).includes('etcd does not answer. This is the last known state.')")
        try await becomes("\(fleet).includes('host1: too slow')")
        try await becomes("\(row("host1")) === 'host1|rolled back|30 calls, 0 failed|'")
        gateway.gateway.showFleet(record(state: "rolledBack", steps: steps))
        try await becomes("\(fleet).includes('Rollout of Shop 1.1.0: rolled back')")
        try await becomes("!\(fleet).includes('etcd does not answer')")
    }

    /// The cells of the row whose first one has a text.
    private func row(_ name: String) -> String {
        "([...document.querySelectorAll('#fleet-content tbody tr')].map(r => [...r.cells].map(c => c.textContent))"
            + ".find(c => c[0] === '\(name)')?.join('|') ?? '')"
    }

    private func step(_ state: String, calls: Int) -> Value {
        ["state": .string(state), "observed": ["calls": .int(calls), "errors": 0]]
    }

    /// What `fleet status --json` prints, with what a host adds to it.
    private func record(state: String, steps: Value, isKnown: Bool = true) -> Value {
        func host(_ address: String, _ state: String, _ version: String) -> [String: Value] {
            [
                "address": .string(address), "state": .string(state),
                "modules": [["name": "Shop", "version": .string(version), "digest": "0", "generation": 1]],
            ]
        }
        var second = host("10.0.0.12:8080", "starting", "1.0.0")
        second["problem"] = "<img src=x onerror=1>"
        var rollout: [String: Value] = [
            "id": "1", "module": "Shop", "release": ["version": "1.1.0", "digest": "0"], "state": .string(state),
            "steps": steps,
        ]
        if state != "running" { rollout["reason"] = "host1: too slow" }
        return [
            "self": "host1", "isKnown": .bool(isKnown), "problems": [], "desired": [:], "rollout": .map(rollout),
            "hosts": ["host1": .map(host("10.0.0.11:8080", "ready", "1.1.0")), "host2": .map(second)],
        ]
    }
}
