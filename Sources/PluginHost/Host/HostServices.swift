public import PluginABI

extension PluginHost {
    /// Every service, by name; of each name the one that serves first.
    public var services: [ServiceInfo] {
        let services = calls.registry.table.services
        return services.sorted { $0.key < $1.key }.flatMap(\.value).map { $0.info }
    }

    /// Asks for a service: the highest version that a module offers, and of equal ones the highest priority.
    ///
    /// - Parameters:
    ///   - name: The name of the service.
    ///   - version: The smallest version that will do. Default: any.
    /// - Throws: ``/PluginABI/PluginError/Code/unknownService``, with the versions that there are; what making the
    ///   instance throws.
    public func service(_ name: String, from version: String? = nil) throws(PluginError) -> ServiceHandle {
        try program.service(name, from: version)
    }

    /// Asks for a service as a type of the caller's.
    ///
    /// - Throws: As ``service(_:from:)``.
    public func service<Client: ServiceClient>(_ type: Client.Type) throws(PluginError) -> Client {
        try program.service(type)
    }

    /// What implements a service. No instance is made.
    ///
    /// - Throws: ``/PluginABI/PluginError/Code/unknownService``.
    public func serviceInfo(_ name: String, from version: String? = nil) throws(PluginError) -> ServiceInfo {
        try program.serviceInfo(name, from: version)
    }

    /// Waits until a module offers a service.
    ///
    /// - Parameters:
    ///   - name: The name of the service.
    ///   - version: The smallest version that will do. Default: any.
    ///   - timeout: How long.
    /// - Returns: What implements it. Ask for it with ``service(_:from:)``.
    /// - Throws: ``/PluginABI/PluginError/Code/deadlineExceeded``; ``/PluginABI/PluginError/Code/hostStopped`` when the
    ///   host is shut down meanwhile; ``/PluginABI/PluginError/Code/cancelled`` when this task is cancelled.
    @discardableResult
    public func waitForService(
        _ name: String, from version: String? = nil, timeout: Duration
    ) async throws(PluginError) -> ServiceInfo {
        try await program.waitForService(name, from: version, timeout: timeout)
    }
}
