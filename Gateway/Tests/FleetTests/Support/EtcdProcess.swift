import Foundation
import PluginGatewayFleet

/// A separate etcd for one test, on free ports.
final class EtcdProcess {
    let url: String
    private let configuration: EtcdConfiguration
    private let arguments: [String]
    private let log: String
    private(set) var child: Child

    /// - Parameters:
    ///   - address: The address to listen on.
    ///   - tls: The files with its certificate, which is also that of the clients; `nil` for no TLS.
    init(_ address: String = "127.0.0.1", tls: EtcdConfiguration? = nil) async throws {
        let folder = try makeFolder()
        let (client, peer) = (try freePort(), try freePort())
        url = "\(tls == nil ? "http" : "https")://\(address):\(client)"
        var configuration = tls ?? EtcdConfiguration(endpoints: [])
        configuration.endpoints = [url]
        self.configuration = configuration
        var options: [String] = []
        if let file = tls?.certificate, let key = tls?.key {
            options = ["--cert-file", file, "--key-file", key, "--client-cert-auth", "--trusted-ca-file", file]
        }
        arguments =
            [
                "etcd", "--data-dir", "\(folder)/data", "--listen-client-urls", url, "--advertise-client-urls", url,
                "--listen-peer-urls", "http://127.0.0.1:\(peer)", "--initial-advertise-peer-urls",
                "http://127.0.0.1:\(peer)",
                "--initial-cluster", "default=http://127.0.0.1:\(peer)", "--logger", "zap", "--log-level", "error",
            ] + options
        log = "\(folder)/log"
        child = try Child(arguments, log: log)
        try await waitUntilReady()
    }

    deinit { child.end() }

    /// Starts it again, with its data.
    ///
    /// - Parameter client: A client that is allowed to read, if not every client is.
    func restart(with client: Etcd? = nil) async throws {
        child.end()
        _ = await child.status()
        child = try Child(arguments, log: log)
        try await waitUntilReady(client)
    }

    private func waitUntilReady(_ client: Etcd? = nil) async throws {
        let etcd = try client ?? self.client()
        guard await becomesTrue({ try await etcd.get("ready") == nil }) else { throw Failed(text: child.text) }
    }

    func client() throws -> Etcd { try Etcd(configuration) }
}

/// Returns a port that was free a moment ago.
func freePort() throws -> Int {
    let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
    defer { close(descriptor) }
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_addr.s_addr = inet_addr("127.0.0.1")
    var length = socklen_t(MemoryLayout<sockaddr_in>.size)
    let isBound = withUnsafeMutablePointer(to: &address) { pointer in
        pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
            bind(descriptor, $0, length) == 0 && getsockname(descriptor, $0, &length) == 0
        }
    }
    guard isBound else { throw Failed(text: "There is no free port.") }
    return Int(UInt16(bigEndian: address.sin_port))
}
