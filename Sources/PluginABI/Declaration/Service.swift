/// A service that a target of the module implements. Other modules find it by its name and the lowest acceptable
/// version, without knowing the module or the target.
///
///     Service("HomeService", version: "1.2.0", target: "A")
public struct Service: ManifestPart {
    let name: String
    let version: String
    let target: String
    let priority: Int
    let isSingleton: Bool
    private(set) var summary = ""

    /// Declares a service.
    ///
    /// - Parameters:
    ///   - name: The name of the service, `[A-Za-z_][A-Za-z0-9_.-]*`. If several modules offer it, the highest version
    ///     serves.
    ///   - version: The version of the service, according to Semantic Versioning 2.0.
    ///   - target: The target of this module that implements the service.
    ///   - priority: The priority: of equal versions, the one with the highest priority serves. Equal versions with
    ///     equal priorities in two modules are a conflict.
    ///   - singleton: Whether all callers share the target's instance. Otherwise each ``HostContext/service(_:from:)``
    ///     gets one of its own, if the target has instances.
    public init(_ name: String, version: String, target: String, priority: Int = 0, singleton: Bool = false) {
        (self.name, self.version, self.target, self.priority) = (name, version, target, priority)
        isSingleton = singleton
    }

    /// Adds one sentence about what the service does.
    public func summary(_ text: String) -> Self { modified(self) { $0.summary = text } }

    public func add(to module: ModuleDescription) {
        var entry = ManifestObject(name: name)
        entry.add("version", .string(version))
        entry.add("target", .string(target))
        if priority != 0 { entry.add("priority", .int(priority)) }
        if isSingleton { entry.add("singleton", true) }
        if !summary.isEmpty { entry.add("summary", .string(summary)) }
        module.services.append(entry.json)
    }
}
