import PluginABI
import Testing

@testable import PluginGatewayFleet

@Suite struct RecordTests {
    private static let digest = String(repeating: "0a", count: 32)
    private static let release = "\"version\": \"1.0.0\", \"digest\": \"\(digest)\""

    @Test(arguments: [
        "{}", "[]", "null", "{\(release), \"file\": \"\"}", "{\(release), \"file\": \"../a.so\"}",
        "{\(release), \"file\": \".a.so\"}", "{\(release), \"file\": \"a/b\"}",
        "{\(release), \"file\": \"a\\u001b[2J\"}",
        "{\(release), \"file\": 1}", "{\"version\": \"1.0.0\", \"digest\": \"00\"}",
        "{\"version\": \"\", \"digest\": \"\(digest)\"}", "{\"version\": \"1\\n\", \"digest\": \"\(digest)\"}",
        "{\"version\": \"1\", \"digest\": \"\(digest.uppercased())\"}",
    ])
    func `a release that cannot be one is refused`(json: String) throws {
        let value = try Value(json: json)
        #expect(throws: RecordError.self) { try ModuleRelease(value) }
    }

    @Test func `records are read as they were written`() throws {
        let release = ModuleRelease(version: "1.0.0", digest: Self.digest, file: "a.so")
        #expect(try ModuleRelease(release.json) == release)
        let host = HostRecord(
            name: "host1", address: "10.0.0.1:80", state: .ready,
            modules: [.init(name: "A", release: release, generation: 3)], problem: "none")
        #expect(try HostRecord("host1", host.json) == host)
        #expect(throws: RecordError.self) { try HostRecord("host/1", host.json) }
        #expect(throws: RecordError.self) { try HostRecord("\u{1b}", host.json) }
        var rollout = RolloutRecord(id: "1", module: "A", release: release, drain: 1, soak: 2.5, limits: .init())
        (rollout.state, rollout.reason, rollout.limits.maximumLatency) = (.rollingBack, "why", 10)
        rollout.steps["host1"] = .init(
            state: .observing, before: release, observed: Observation(calls: 3, errors: 1, latency: 2.5), reason: "x")
        rollout.steps["host2"] = .init(state: .rolledBack)
        #expect(try RolloutRecord(try Value(json: rollout.json.json)) == rollout)
    }

    @Test(arguments: [
        ("state", "\"x\""), ("id", "\"\""), ("module", "\"a b\""), ("release", "{}"), ("drain", "-1"),
        ("soak", "1e300"),
        ("steps", "[]"), ("steps", "{\"a/b\": {\"state\": \"done\"}}"), ("steps", "{\"a\": {\"state\": \"?\"}}"),
        ("steps", "{\"a\": {\"state\": \"done\", \"before\": {}}}"),
    ])
    func `a rollout that cannot be one is refused`(key: String, json: String) throws {
        let release = ModuleRelease(version: "1.0.0", digest: Self.digest, file: "a.so")
        var entries = RolloutRecord(id: "1", module: "A", release: release, drain: 1, soak: 2, limits: .init()).json
            .map!
        entries[key] = try Value(json: json)
        #expect(throws: RecordError.self) { try RolloutRecord(.map(entries)) }
    }

    @Test func `text from etcd does not control a terminal`() {
        #expect("a\u{1b}[2J\n\u{202E}b".clean == "a\u{FFFD}[2J\u{FFFD}\u{FFFD}b")
        #expect(String(repeating: "x", count: 1000).clean.count == 300)
    }

    @Test func `a version is judged by its errors and its durations`() {
        var limits = RolloutRecord.Limits()
        limits.maximumLatency = 100
        limits.maximumLatencyRatio = 3
        let before = Observation(calls: 100, errors: 0, latency: 20)
        for (calls, errors, latency, isGood) in [
            (19, 19, 1000.0, true), (20, 1, 10.0, true), (20, 2, 10.0, false), (100, 0, 101.0, false),
            (100, 0, 61.0, false), (100, 0, 60.0, true),
        ] {
            let observation = Observation(calls: calls, errors: errors, latency: latency)
            #expect((observation.problem(limits, before: before) == nil) == isGood, "\(observation)")
        }
        // Without calls of the old version, there is nothing to compare with.
        let slow = Observation(calls: 100, errors: 0, latency: 61)
        #expect(slow.problem(limits, before: Observation(calls: 0, errors: 0, latency: nil)) == nil)
    }

    @Test(arguments: [
        ("http://10.0.0.1:2379", true), ("https://[::1]:2379", true), ("http://etcd-1.example", true),
        ("10.0.0.1:2379", false),
        ("http://", false), ("http://a/b", false), ("ftp://a", false), ("http://a b", false), ("http://a?b", false),
    ])
    func `an endpoint is a URL without a path`(text: String, isValid: Bool) {
        #expect((EtcdConfiguration.problem(ofEndpoint: text) == nil) == isValid)
    }

    @Test(arguments: [
        ("pluginhost", true), ("/a/b", true), ("a/b", true), ("a/", false), ("a//b", false), ("", false),
        ("a b", false),
    ])
    func `a prefix has plain parts`(text: String, isValid: Bool) {
        #expect(FleetConfiguration.isPrefix(text) == isValid)
    }
}
