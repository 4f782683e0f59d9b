import AsyncHTTPClient
import Foundation
import NIOCore
import NIOHTTP1
import PluginGatewayFleet

/// Three hosts with a plugins folder each, HAProxy in front of them, and etcd.
final class Lab {
    static let token = "0123456789abcdef0123456789abcdef"

    /// The program of the hosts: of a release build, for measurements.
    private static let program =
        ProcessInfo.processInfo.environment["GATEWAY_PROGRAM"] ?? "\(buildFolder)/pluginhost-gateway"

    let network: Network
    let folder: String
    let etcd: EtcdProcess
    let address: String
    let control: FleetControl
    private(set) var balancer: Child?
    private(set) var hosts: [String: Child] = [:]
    private let port: Int

    /// Starts everything, with version 1.0.0 of the module on each host.
    init() async throws {
        network = try Network()
        folder = try makeFolder()
        etcd = try await EtcdProcess(network.address)
        control = FleetControl(try etcd.client(), prefix: "test/fleet")
        port = try freePort()
        address = "http://\(network.address):\(port)"
        try FileManager.default.createDirectory(atPath: "\(folder)/store", withIntermediateDirectories: false)
        for (version, body) in [("1.0.0", ""), ("1.1.0", ""), ("1.2.0", ShopModule.broken), ("1.3.0", "")] {
            try copyFile(ShopModule.build(version, body), to: "\(folder)/store/Shop-\(version).so")
        }
        for host in Network.hosts {
            try FileManager.default.createDirectory(
                atPath: "\(folder)/\(host)/plugins", withIntermediateDirectories: true)
            for path in ["\(folder)/\(host)", "\(folder)/\(host)/plugins"] { chmod(path, 0o755) }
            try copyFile("\(folder)/store/Shop-1.0.0.so", to: "\(folder)/\(host)/plugins/Shop.so")
            try write(configuration(host), to: "\(folder)/\(host)/gateway.json")
            try write("client \(Self.token)\n", to: "\(folder)/\(host)/tokens", mode: 0o600)
            try start(host)
        }
        try await waitUntilReady()
        try startBalancer()
    }

    private func write(_ text: String, to path: String, mode: mode_t = 0o644) throws {
        try text.write(toFile: path, atomically: false, encoding: .utf8)
        chmod(path, mode)
    }

    private func configuration(_ host: String) -> String {
        """
        {"plugins": ["plugins"], "listen": "\(network.address(of: host)):8080", "tokens": "tokens",
         "timeouts": {"drainDelay": 3, "drain": 10},
         "host": {"stateFolder": "state", "stagingFolder": "staging"},
         "fleet": {"endpoints": ["\(etcd.url)"], "name": "\(host)", "store": "\(folder)/store", "prefix": "test/fleet",
                   "lease": 5, "etcdTimeout": 1, "poll": 1}}
        """
    }

    // MARK: Processes

    func start(_ host: String) throws {
        hosts[host] = try Child(
            network.enter(host)
                + [Self.program, "serve", "--config", "\(folder)/\(host)/gateway.json"],
            log: "\(folder)/\(host)/log",
            environment: ["FLEET_LOG": "\(folder)/\(host)/did", "FLEET_NAME": host, "TMPDIR": "\(folder)/\(host)"])
    }

    /// Waits until all hosts are ready according to etcd.
    func waitUntilReady() async throws {
        let isReady = await becomesTrue {
            try await control.snapshot().hosts.values.count { $0.state == .ready && !$0.modules.isEmpty } == 3
        }
        guard isReady else { throw Failed(text: logs) }
    }

    /// The output of the hosts and the balancer.
    var logs: String {
        Network.hosts.map { "\($0):\n\(hosts[$0]?.text ?? "")" }.joined(separator: "\n") + (balancer?.text ?? "")
    }

    /// Starts HAProxy with the configuration file of `Gateway/Fleet`.
    private func startBalancer() throws {
        let url = URL(filePath: #filePath).appending(path: "../../../../Fleet/haproxy.cfg").standardized
        var text = try String(contentsOf: url, encoding: .utf8)
        func replace(_ old: String, _ new: String) throws {
            guard text.contains(old) else { throw Failed(text: "haproxy.cfg has no “\(old)”.") }
            text = text.replacing(old, with: new)
        }
        try write("/call/Shop/look\n", to: "\(folder)/idempotent.list")
        try replace("/etc/haproxy/idempotent.list", "\(folder)/idempotent.list")
        try replace("/run/haproxy/admin.sock", "\(folder)/admin.sock")
        try replace("abns@pluginhost-gateways", "abns@pluginhost-gateways-\(getpid())")
        try replace("bind :8080", "bind \(network.address):\(port)")
        for (number, host) in Network.hosts.enumerated() {
            try replace("10.0.0.1\(number + 1):8080", "\(network.address(of: host)):8080")
        }
        try write(text, to: "\(folder)/haproxy.cfg")
        balancer = try Child(["haproxy", "-f", "\(folder)/haproxy.cfg", "-db"], log: "\(folder)/haproxy.log")
    }

    /// Runs `pluginhost-gateway fleet …`.
    func fleet(_ arguments: [String]) async throws -> (output: String, status: Int32) {
        try await Program.run(
            ["\(buildFolder)/pluginhost-gateway", "fleet"] + arguments + ["--config", "\(folder)/host1/gateway.json"])
    }

    // MARK: Counters

    /// The statistics of HAProxy: for each `proxy/server`, the numbers by their names.
    func balancerCounts() async throws -> [String: [String: String]] {
        let text = try await onThread { [folder] in try ask("show stat\n", "\(folder)/admin.sock") }
        let rows = text.split(separator: "\n").map {
            $0.split(separator: ",", omittingEmptySubsequences: false).map(String.init)
        }
        guard let names = rows.first else { return [:] }
        return Dictionary(
            rows.dropFirst().map { row in ("\(row[0])/\(row[1])", Dictionary(zip(names, row)) { first, _ in first }) }
        ) { first, _ in first }
    }

    /// Sends a command to the balancer through its socket.
    func tellBalancer(_ line: String) throws -> String { try ask("\(line)\n", "\(folder)/admin.sock") }

    /// Whether the balancer sends requests to all hosts.
    func areAllUp() async throws -> Bool {
        let counts = try await balancerCounts()
        return Network.hosts.allSatisfy { counts["gateways/\($0)"]?["status"] == "UP" }
    }

    /// Sends a GET request to a host, bypassing the balancer, and returns the body of the answer.
    func get(_ path: String, of host: String) async throws -> String {
        var request = HTTPClientRequest(url: "http://\(network.address(of: host)):8080\(path)")
        request.headers.add(name: "Authorization", value: "Bearer \(Lab.token)")
        let response = try await HTTPClient.shared.execute(request, timeout: .seconds(30))
        return String(buffer: try await response.body.collect(upTo: 1 << 20))
    }

    /// The number of calls that a host has counted.
    func calls(of host: String) async throws -> Int {
        let text = try await get("/metrics", of: host)
        return text.split(separator: "\n").filter { $0.hasPrefix("gateway_calls_total{") }
            .compactMap { $0.split(separator: " ").last.flatMap { Int($0) } }.reduce(0, +)
    }

    /// The lines that the modules of a host have written: an event, a version, a number.
    func lines(of host: String) -> [(what: String, version: String, number: Int)] {
        ((try? String(contentsOfFile: "\(folder)/\(host)/did", encoding: .utf8)) ?? "").split(separator: "\n")
            .compactMap {
                let parts = $0.split(separator: " ")
                guard parts.count == 3, let number = Int(parts[2]) else { return nil }
                return (String(parts[0]), String(parts[1]), number)
            }
    }
}

/// Sends a line to a socket, and returns the whole answer.
private func ask(_ line: String, _ path: String) throws -> String {
    let descriptor = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0)
    defer { close(descriptor) }
    var address = sockaddr_un()
    address.sun_family = sa_family_t(AF_UNIX)
    withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path.utf8.prefix($0.count - 1)) }
    let isConnected = withUnsafePointer(to: &address) { pointer in
        pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
            connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_un>.size)) == 0
        }
    }
    guard isConnected, write(descriptor, line, line.utf8.count) > 0 else {
        throw Failed(text: "No answer from \(path).")
    }
    return String(decoding: FileHandle(fileDescriptor: descriptor).readDataToEndOfFile(), as: UTF8.self)
}
