package import PluginABI

extension ModuleManifest {
    /// A service, which modules find by its name and the lowest acceptable version. A target implements it.
    package struct Service: Sendable, Hashable {
        package var name: String
        package var version: SemanticVersion
        package var target: String
        /// The priority among services of equal versions. The one with the highest priority serves.
        package var priority = 0
        /// Whether all callers share the target's instance.
        package var isSingleton = false
        package var summary = ""
        /// The actions that callers may use; `nil` if they may use all actions of the target.
        package var interface: [Action]?

        /// The combination that only one service can have.
        package struct Key: Hashable, Sendable {
            package let name: String
            package let version: SemanticVersion
            package let priority: Int
        }

        package var key: Key { Key(name: name, version: version, priority: priority) }
    }
}

extension ManifestNode {
    func services(of targets: [ModuleManifest.Target]) throws(PluginError) -> [ModuleManifest.Service] {
        var keys: Set<ModuleManifest.Service.Key> = []
        var offers: [String: [ServiceOffer]] = [:]
        return try elements("services", "service") { node, _ throws(PluginError) in
            let service = try ModuleManifest.Service(node)
            guard let target = targets.first(where: { $0.name == service.target }) else {
                throw node.error(
                    "it is implemented by the target \"\(service.target.shortened)\", which the module does not have",
                    didYouMean(service.target, targets.map(\.name)))
            }
            try node.check(
                !service.isSingleton || target.instance != .perCall,
                else: "it is a singleton, but the target \(target.name) makes an instance for each call (\"perCall\")")
            if let interface = service.interface, let obstacle = target.actions.obstacle(to: interface) {
                throw node.error("the target \(target.name) does not fulfil the interface of the service: \(obstacle)")
            }
            try check(
                keys.insert(service.key).inserted,
                else: "the service \(service.name) \(service.version) is declared twice with the priority "
                    + "\(service.priority)")
            let offer = ServiceOffer(service, by: target, owner: "target \(target.name)")
            for other in offers[service.name] ?? [] {
                if let conflict = offer.conflict(with: other) { throw node.error(conflict) }
            }
            offers[service.name, default: []].append(offer)
            return service
        }
    }
}

extension ModuleManifest.Service {
    /// Reads a service that the program's code declares.
    ///
    /// - Throws: `invalidManifest`.
    package init(declaredInProgram text: String) throws(PluginError) {
        let value = try Value(jsonFile: Array(text.utf8), code: .invalidManifest, what: "The service")
        let location = "service \(value["name"]?.string?.shortened ?? "")"
        try self.init(ManifestNode(value: value, location: location, skipsUnknown: false, document: "the program"))
    }

    /// Reads a service from a service file.
    init(_ declared: ServiceFile.Declaration, ofFile path: String) throws(PluginError) {
        switch declared {
        case .named(let name, let value):
            let location = "service \(name.shortened)"
            let node = try ManifestNode(value: value, location: location, skipsUnknown: false, document: path)
            try self.init(node, named: name)
        case .ofBeeHive(let value, let number):
            let location = "service number \(number)"
            let node = try ManifestNode(value: value, location: location, skipsUnknown: false, document: path)
            try node.checkKeys(["service", "impl"])
            try self.init(
                name: node.name("service"), version: SemanticVersion(1, 0, 0), target: node.name("impl"))
        }
    }

    /// Reads a service.
    ///
    /// - Parameter given: The name, if it is not part of the object.
    fileprivate init(_ node: ManifestNode, named given: String? = nil) throws(PluginError) {
        let keys = ["name", "version", "target", "priority", "singleton", "summary", "interface"]
        try node.checkKeys(given == nil ? keys : Array(keys.dropFirst()))
        name = if let given { try node.name(checking: given) } else { try node.name() }
        version = try node.version()
        target = try node.string("target")
        priority = try node.optional("priority", \.int, "an integer") ?? 0
        isSingleton = try node.flag("singleton")
        summary = try node.summary()
        if node["interface"] != nil {
            interface = try node.list("interface", "action", ModuleManifest.Action.init(inInterface:))
        }
    }
}
