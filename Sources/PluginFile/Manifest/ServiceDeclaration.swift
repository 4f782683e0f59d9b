import PluginABI

extension ModuleManifest {
    /// What others find by name and smallest version, implemented by a target of the module.
    package struct Service: Sendable, Hashable {
        package var name: String
        package var version: SemanticVersion
        package var target: String
        /// Of equal versions the higher one serves.
        package var priority = 0
        /// Whether all callers share the target's instance.
        package var isSingleton = false
        package var summary = ""

        /// Whether both claim the same place.
        package func collides(with other: Service) -> Bool {
            name == other.name && version == other.version && priority == other.priority
        }
    }
}

extension ManifestNode {
    func services(of targets: [ModuleManifest.Target]) throws(PluginError) -> [ModuleManifest.Service] {
        var services: [ModuleManifest.Service] = []
        for (index, value) in (try optional("services", \.list, "a list") ?? []).enumerated() {
            let place = "service \(value["name"]?.string?.shortened ?? "number \(index + 1)")"
            let node = try ManifestNode(value: value, place: place, skipsUnknown: skipsUnknown)
            let service = try ModuleManifest.Service(node)
            guard let target = targets.first(where: { $0.name == service.target }) else {
                throw node.error(
                    "it is implemented by the target \"\(service.target.shortened)\", which the module does not have."
                        + didYouMean(service.target, targets.map(\.name)))
            }
            if service.isSingleton, target.instance == .perCall {
                throw node.error(
                    "it is a singleton, and the target \(target.name) makes an instance for each call (\"perCall\")")
            }
            guard !services.contains(where: { $0.collides(with: service) }) else {
                throw error(
                    "the service \(service.name) \(service.version) is there twice with the priority "
                        + "\(service.priority)")
            }
            services.append(service)
        }
        return services
    }
}

extension ModuleManifest.Service {
    /// As it stands in a service file, under its name.
    init(named name: String, _ value: Value, ofFile path: String) throws(PluginError) {
        let place = "service \(name.shortened)"
        func node(_ value: Value) throws(PluginError) -> ManifestNode {
            try ManifestNode(value: value, place: place, skipsUnknown: false, document: path)
        }
        // In a file the name stands in front.
        try node(value).checkKeys(Self.keys.filter { $0 != "name" })
        try self.init(node(.map((value.map ?? [:]).merging(["name": .string(name)]) { $1 })))
    }

    private static let keys = ["name", "version", "target", "priority", "singleton", "summary"]

    fileprivate init(_ node: ManifestNode) throws(PluginError) {
        try node.checkKeys(Self.keys)
        name = try node.name()
        let text = try node.required("version", \.string, "a string")
        guard let version = SemanticVersion(text) else {
            throw node.error("the version \"\(text.shortened)\" is no semantic version, such as \"1.0.0\"")
        }
        self.version = version
        target = try node.required("target", \.string, "a string")
        priority = try node.optional("priority", \.int, "an integer") ?? 0
        isSingleton = try node.flag("singleton")
        summary = try node.summary()
    }
}
