public import PluginABI

extension PluginHost {
    /// Every service, sorted by name. If several services have the same name, the preferred one comes first.
    public var services: [ServiceInfo] {
        let services = calls.registry.table.services
        return services.sorted { $0.key < $1.key }.flatMap(\.value).map { $0.info }
    }

    /// Returns a service: the highest version that a module offers, and among equal versions the one with the highest
    /// priority.
    ///
    /// - Parameters:
    ///   - name: The name of the service.
    ///   - version: The lowest acceptable version. Default: any.
    /// - Throws: ``/PluginABI/PluginError/Code/unknownService``, listing the available versions; the error of the
    ///   service factory.
    public func service(_ name: String, from version: String? = nil) throws(PluginError) -> ServiceHandle {
        try program.service(name, from: version)
    }

    /// Returns a service as a client type of the caller.
    ///
    /// - Throws: The errors of ``service(_:from:)``.
    public func service<Client: ServiceClient>(_ type: Client.Type) throws(PluginError) -> Client {
        try program.service(type)
    }

    /// Returns the description of a service's implementation, without making an instance.
    ///
    /// - Throws: ``/PluginABI/PluginError/Code/unknownService``.
    public func serviceInfo(_ name: String, from version: String? = nil) throws(PluginError) -> ServiceInfo {
        try program.serviceInfo(name, from: version)
    }

    /// Waits until a module offers a service.
    ///
    /// - Parameters:
    ///   - name: The name of the service.
    ///   - version: The lowest acceptable version. Default: any.
    ///   - timeout: How long to wait.
    /// - Returns: The description of the service's implementation. Use ``service(_:from:)`` to get the service itself.
    /// - Throws: ``/PluginABI/PluginError/Code/deadlineExceeded``; ``/PluginABI/PluginError/Code/hostStopped`` if the
    ///   host is shut down in the meantime; ``/PluginABI/PluginError/Code/cancelled`` if this task is cancelled.
    @discardableResult
    public func waitForService(
        _ name: String, from version: String? = nil, timeout: Duration
    ) async throws(PluginError) -> ServiceInfo {
        try await program.waitForService(name, from: version, timeout: timeout)
    }
}
