/// A service that a target of the module implements: others find it by name and smallest version, and know neither module
/// nor target.
///
///     Service("HomeService", version: "1.2.0", target: "A")
public struct Service: ManifestPart {
    let name: String
    let version: String
    let target: String
    let priority: Int
    let isSingleton: Bool
    private(set) var summary = ""

    /// - Parameters:
    ///   - name: `[A-Za-z_][A-Za-z0-9_.-]*`. Several modules may offer it: the highest version serves.
    ///   - version: A version by the rules of Semantic Versioning 2.0.
    ///   - target: The target of this module that implements it.
    ///   - priority: Of equal versions the higher one serves; the same in two modules is a conflict.
    ///   - singleton: Whether all callers share the target's instance. Else each ``HostContext/service(_:from:)`` gets
    ///     one of its own, if the target has instances.
    public init(_ name: String, version: String, target: String, priority: Int = 0, singleton: Bool = false) {
        self.name = name
        self.version = version
        self.target = target
        self.priority = priority
        isSingleton = singleton
    }

    /// One sentence about what the service does.
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
