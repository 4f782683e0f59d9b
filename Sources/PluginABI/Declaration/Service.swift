/// A service that a target implements. Modules find it by its name and the lowest acceptable version, without knowing
/// the module or the target.
///
///     Service("HomeService", version: "1.2.0", target: "A")
///
/// In a manifest, the target is one of the module. The program can also bind a service to the target of any module:
/// `host.addService(Service("HomeService", version: "1.2.0", target: "A"))`.
public struct Service: ManifestPart {
    let name: String
    let version: String
    let target: String
    let priority: Int
    let isSingleton: Bool
    private(set) var summary = ""
    private(set) var interface: [ServiceAction]?

    /// Declares a service.
    ///
    /// - Parameters:
    ///   - name: The name of the service, `[A-Za-z_][A-Za-z0-9_.-]*`. If several modules offer it, the highest version
    ///     serves.
    ///   - version: The version of the service, according to Semantic Versioning 2.0.
    ///   - target: The target that implements the service.
    ///   - priority: The priority: of equal versions, the one with the highest priority serves. Equal versions with
    ///     equal priorities in two modules are a conflict.
    ///   - singleton: Whether all callers share the target's instance. Otherwise, if the target has instances, each
    ///     call of ``HostContext/service(_:from:)`` gets one of its own.
    public init(_ name: String, version: String, target: String, priority: Int = 0, singleton: Bool = false) {
        (self.name, self.version, self.target, self.priority) = (name, version, target, priority)
        isSingleton = singleton
    }

    /// Adds one sentence about what the service does.
    public func summary(_ text: String) -> Self { modified(self) { $0.summary = text } }

    /// Declares the interface: the only actions of the target that callers may use.
    ///
    /// The host checks the target against the interface when the service is registered: each action must exist, accept
    /// the parameters at the same positions, require no others, and have a result of the declared kind. Other
    /// implementations of the service are checked, too, if they have the same version, or a higher one with the same
    /// major version (for 0.x, the same minor version).
    public func interface(_ actions: ServiceAction...) -> Self { modified(self) { $0.interface = actions } }

    /// Declares the interface as a list, which several services can share.
    public func interface(_ actions: [ServiceAction]) -> Self { modified(self) { $0.interface = actions } }

    public func add(to module: ModuleDescription) { module.services.append(json(module.book)) }

    /// The service's entry in the manifest.
    package var json: String { json(nil) }

    private func json(_ book: TypeBook?) -> String {
        var entry = ManifestObject(name: name)
        entry.add("version", .string(version))
        entry.add("target", .string(target))
        if priority != 0 { entry.add("priority", .int(priority)) }
        if isSingleton { entry.add("singleton", true) }
        if !summary.isEmpty { entry.add("summary", .string(summary)) }
        if let interface { entry.add("interface", interface.map { $0.json(book) }) }
        return entry.json
    }
}
