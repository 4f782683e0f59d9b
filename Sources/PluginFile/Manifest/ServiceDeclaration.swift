import PluginABI

extension ModuleManifest {
    /// A service, which other modules find by its name and the lowest acceptable version. A target of the module
    /// implements it.
    package struct Service: Sendable, Hashable {
        package var name: String
        package var version: SemanticVersion
        package var target: String
        /// The priority among services of equal versions. The one with the highest priority serves.
        package var priority = 0
        /// Whether all callers share the target's instance.
        package var isSingleton = false
        package var summary = ""

        /// Returns whether both services have the same name, version and priority.
        package func collides(with other: Service) -> Bool {
            name == other.name && version == other.version && priority == other.priority
        }
    }
}

extension ManifestNode {
    func services(of targets: [ModuleManifest.Target]) throws(PluginError) -> [ModuleManifest.Service] {
        try elements("services", "service") { node, services throws(PluginError) in
            let service = try ModuleManifest.Service(node)
            guard let target = targets.first(where: { $0.name == service.target }) else {
                throw node.error(
                    "it is implemented by the target \"\(service.target.shortened)\", which the module does not have."
                        + didYouMean(service.target, targets.map(\.name)))
            }
            try node.check(
                !service.isSingleton || target.instance != .perCall,
                else: "it is a singleton, but the target \(target.name) makes an instance for each call (\"perCall\")")
            try check(
                !services.contains { $0.collides(with: service) },
                else: "the service \(service.name) \(service.version) is declared twice with the priority "
                    + "\(service.priority)")
            return service
        }
    }
}

extension ModuleManifest.Service {
    /// Reads a service from a service file, in which services are listed by name.
    init(named name: String, _ value: Value, ofFile path: String) throws(PluginError) {
        let location = "service \(name.shortened)"
        let node = try ManifestNode(value: value, location: location, skipsUnknown: false, document: path)
        try self.init(node, named: name)
    }

    /// Reads a service.
    ///
    /// - Parameter given: The name, if it is not part of the object.
    fileprivate init(_ node: ManifestNode, named given: String? = nil) throws(PluginError) {
        let keys = ["name", "version", "target", "priority", "singleton", "summary"]
        try node.checkKeys(given == nil ? keys : Array(keys.dropFirst()))
        name = if let given { try node.name(checking: given) } else { try node.name() }
        version = try node.version()
        target = try node.string("target")
        priority = try node.optional("priority", \.int, "an integer") ?? 0
        isSingleton = try node.flag("singleton")
        summary = try node.summary()
    }
}
