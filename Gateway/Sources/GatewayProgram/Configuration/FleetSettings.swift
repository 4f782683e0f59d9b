import ArgumentParser
import Foundation
import PluginGatewayFleet

extension FleetConfiguration {
    /// Reads the setting `fleet`.
    ///
    /// - Parameter listen: The address that the gateway listens on, which is displayed if no other address is given.
    init?(_ node: ConfigurationNode, listen: String) throws {
        let names = [
            "endpoints", "user", "passwordFile", "certificateAuthority", "certificate", "key", "name", "address",
            "store",
            "prefix", "lease", "etcdTimeout", "joinTimeout", "replaceTimeout", "drain", "poll",
        ]
        guard let fleet = try node.node("fleet", names) else { return nil }
        guard let endpoints = try fleet.texts("endpoints"), (1...16).contains(endpoints.count) else {
            throw fleet.error(
                [], "“fleet” must have “endpoints”: a list of 1 to 16 URLs such as [\"http://10.0.0.1:2379\"].")
        }
        for (number, endpoint) in endpoints.enumerated() {
            if let problem = EtcdConfiguration.problem(ofEndpoint: endpoint) {
                throw fleet.error(["endpoints", String(number)], problem)
            }
        }
        var etcd = EtcdConfiguration(endpoints: endpoints)
        (etcd.user, etcd.passwordFile) = (try fleet.text("user"), try fleet.path("passwordFile"))
        guard (etcd.user == nil) == (etcd.passwordFile == nil) else {
            throw fleet.error([], "Give both “user” and “passwordFile”, or neither.")
        }
        etcd.certificateAuthority = try fleet.path("certificateAuthority")
        (etcd.certificate, etcd.key) = (try fleet.path("certificate"), try fleet.path("key"))
        guard (etcd.certificate == nil) == (etcd.key == nil) else {
            throw fleet.error([], "Give both “certificate” and “key”, or neither.")
        }
        if let seconds = try fleet.seconds("etcdTimeout", in: 0.05...60) { etcd.timeout = .seconds(seconds) }
        let name = try fleet.text("name") ?? ProcessInfo.processInfo.hostName
        guard HostRecord.isName(name) else {
            throw fleet.error(
                ["name"], "“name” must have 1 to 64 letters, digits, “.”, “-” and “_”, and not begin with “.”.")
        }
        self.init(
            etcd: etcd, name: name, address: try fleet.text("address") ?? listen, store: try fleet.path("store"))
        guard address.utf8.count <= 256, address.utf8.allSatisfy({ (0x21..<0x7F).contains($0) }) else {
            throw fleet.error(["address"], "“address” must be an address with a port, such as 10.0.0.5:8080.")
        }
        if let text = try fleet.text("prefix") {
            guard Self.isPrefix(text) else {
                throw fleet.error(
                    ["prefix"], "“prefix” must have letters, digits, “.”, “-” and “_”, and “/” between them.")
            }
            prefix = text
        }
        leaseSeconds = try fleet.number("lease", in: 1...3600) ?? leaseSeconds
        if let seconds = try fleet.seconds("joinTimeout") { joinTimeout = .seconds(seconds) }
        if let seconds = try fleet.seconds("replaceTimeout") { replaceTimeout = .seconds(seconds) }
        if let seconds = try fleet.seconds("poll", in: 0.1...3600) { pollInterval = .seconds(seconds) }
        if let seconds = try fleet.seconds("drain", in: ServeSettings.drainTimes) { drain = .seconds(seconds) }
    }
}
