import Foundation

/// Three hosts in separate network namespaces, which a bridge connects with this one. Requires root.
final class Network {
    /// The address of this namespace on the bridge.
    let address: String
    private let prefix: String
    private let subnet: String

    static let hosts = ["host1", "host2", "host3"]

    init() throws {
        Self.removeAbandoned()
        let number = Int(getpid())
        subnet = "10.\(64 + number % 64).\(number / 64 % 256)"
        (prefix, address) = ("gf\(number)", "\(subnet).1")
        try run("ip", "link", "add", "\(prefix)b", "type", "bridge")
        try run("ip", "addr", "add", "\(address)/24", "dev", "\(prefix)b")
        try run("ip", "link", "set", "\(prefix)b", "up")
        for (index, host) in Self.hosts.enumerated() {
            let (space, outer) = (space(host), "\(prefix)v\(index)")
            try run("ip", "netns", "add", space)
            try run("ip", "link", "add", outer, "type", "veth", "peer", "name", "eth0", "netns", space)
            try run("ip", "link", "set", outer, "master", "\(prefix)b", "up")
            try run("ip", "-n", space, "addr", "add", "\(address(of: host))/24", "dev", "eth0")
            try run("ip", "-n", space, "link", "set", "eth0", "up")
            try run("ip", "-n", space, "link", "set", "lo", "up")
        }
    }

    deinit { Self.remove(prefix) }

    func address(of host: String) -> String { "\(subnet).\(11 + Self.hosts.firstIndex(of: host)!)" }

    /// The beginning of a command that runs in the namespace of a host.
    func enter(_ host: String) -> [String] { ["ip", "netns", "exec", space(host)] }

    private func space(_ host: String) -> String { "\(prefix)-\(host)" }

    // MARK: Removing

    /// Removes what test processes that were killed have left behind.
    private static func removeAbandoned() {
        let spaces = (try? FileManager.default.contentsOfDirectory(atPath: "/run/netns")) ?? []
        let links = (try? FileManager.default.contentsOfDirectory(atPath: "/sys/class/net")) ?? []
        for name in Set(
            (spaces + links).filter { $0.hasPrefix("gf") }.map { $0.prefix { $0 == "g" || $0 == "f" || $0.isNumber } })
        {
            if let id = Int32(name.dropFirst(2)), kill(id, 0) != 0 { remove(String(name)) }
        }
    }

    private static func remove(_ prefix: String) {
        for host in hosts {
            let space = "\(prefix)-\(host)"
            for id in ((try? run("ip", "netns", "pids", space)) ?? "").split(separator: "\n").compactMap({ Int32($0) })
            {
                kill(id, SIGKILL)
            }
            _ = try? run("ip", "netns", "del", space)
        }
        _ = try? run("ip", "link", "del", "\(prefix)b")
    }
}
