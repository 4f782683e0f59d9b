public import PluginABI
import PluginFile

extension PluginHost {
    /// Every service, sorted by name. If several services have the same name, the preferred one comes first.
    public var services: [ServiceInfo] {
        let table = calls.registry.table
        let started = table.services.values.joined().map { entry in
            (entry.name, entry.version, entry.priority, entry.info)
        }
        let known = table.contents.known.modules.filter { !$0.outline.services.isEmpty }.flatMap { module in
            module.manifest.services.map { DeclaredServices.Resting(service: $0, module: module, file: nil) }
        }
        let resting = (known + table.restingServices).map { resting in
            (resting.service.name, resting.service.version, resting.service.priority, resting.info)
        }
        return (started + resting).sorted {
            $0.0 != $1.0 ? $0.0 < $1.0 : ($0.1, $0.2) > ($1.1, $1.2)
        }.map { $0.3 }
    }

    /// Binds a service of the program to a target, of any module.
    ///
    ///     try host.addService(Service("HomeService", version: "1.2.0", target: "A"))
    ///
    /// The target need not exist yet: the service exists as long as the target does. If the target belongs to a module
    /// that does not fulfil the interface of the service, the service is not registered, and ``problems`` states the
    /// reason.
    ///
    /// - Parameter service: The service, its priority and, if it has one, its interface.
    /// - Throws: ``/PluginABI/PluginError/Code/invalidManifest``; ``/PluginABI/PluginError/Code/conflict`` if a module
    ///   or the program already offers the same version with the same priority, if the target does not fulfil the
    ///   interface, or if versions of the service are not compatible.
    public func addService(_ service: Service) throws(PluginError) {
        let added = try ModuleManifest.Service(declaredInProgram: service.json)
        try calls.registry.update { (table) throws(PluginError) in
            var services = table.declaredServices
            services.program.append(added)
            let standing = services.standing(with: table.generations, table.targets, table.contents.known)
            if let refusal = standing.refused[DeclaredServices.key(of: added)] { throw refusal }
            return table.changed { $0.declaredServices = services }
        }
        lifecycle.tellDeclarationProblems()
    }

    /// Removes services that ``addService(_:)`` has bound.
    ///
    /// - Parameters:
    ///   - name: The name of the service.
    ///   - version: The version; `nil` for all versions.
    /// - Returns: Whether there were any.
    @discardableResult
    public func removeService(_ name: String, version: String? = nil) -> Bool {
        var isFound = false
        try? calls.registry.update { table in
            var services = table.declaredServices
            services.program.removeAll { $0.name == name && (version == nil || $0.version.description == version) }
            isFound = services != table.declaredServices
            return isFound ? table.changed { $0.declaredServices = services } : table
        }
        if isFound {
            lifecycle.tellDeclarationProblems()
            lifecycle.retryRefused()
        }
        return isFound
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
