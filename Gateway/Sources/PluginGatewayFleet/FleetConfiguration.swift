import Foundation

/// How a host takes part in a fleet.
public struct FleetConfiguration: Sendable {
    /// How to reach etcd.
    public var etcd: EtcdConfiguration
    /// The name of the host in the fleet: letters, digits, `.`, `-` and `_`, at most 64.
    public var name: String
    /// The address at which the balancer reaches the host, such as `10.0.0.5:8080`. It is only displayed.
    public var address: String
    /// The folder in which the operator's tools put the files of modules; `nil` if the host does not replace any.
    public var store: String?
    /// The beginning of the keys in etcd, without a slash at its end.
    public var prefix = "pluginhost"
    /// How long etcd remembers a host that no longer renews its lease, in seconds, 1 or more.
    public var leaseSeconds = 10
    /// How long the host is out of the balancer before it replaces a module outside of a rollout, by the desired
    /// release.
    public var drain: Duration = .seconds(2)
    /// How long a starting host waits for etcd before it serves what is in its plugins folder.
    public var joinTimeout: Duration = .seconds(3)
    /// How long the host may take to serve a file that was put into its plugins folder.
    public var replaceTimeout: Duration = .seconds(60)
    /// How often the host checks whether there is something to do if etcd does not notify it.
    public var pollInterval: Duration = .seconds(5)

    /// - Parameters:
    ///   - etcd: How to reach etcd.
    ///   - name: The name of the host in the fleet.
    ///   - address: Where the balancer reaches the host.
    ///   - store: The folder with the files of modules.
    public init(etcd: EtcdConfiguration, name: String, address: String, store: String?) {
        (self.etcd, self.name, self.address, self.store) = (etcd, name, address, store)
    }
}

/// The reason why a host could not take its step, or why a command was refused.
public struct FleetError: Error, Sendable, CustomStringConvertible {
    public let description: String

    /// Whether the step was not taken because it no longer belongs to this host.
    let isOvertaken: Bool

    init(_ description: String, isOvertaken: Bool = false) {
        (self.description, self.isOvertaken) = (description, isOvertaken)
    }
}

/// Runs a body that blocks on a thread of its own.
func onThread<Result: Sendable>(_ body: @escaping @Sendable () throws -> Result) async throws -> Result {
    try await withCheckedThrowingContinuation { (continuation: CheckedContinuation<Result, any Error>) in
        Thread.detachNewThread { continuation.resume(with: Swift.Result { try body() }) }
    }
}
