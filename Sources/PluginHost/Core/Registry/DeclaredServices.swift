import PluginABI
import PluginFile
import Synchronization

/// The services that no manifest declares: those that the program has bound to targets, and those of service files.
/// Which of them are registered is determined for each table.
struct DeclaredServices: Sendable, Equatable {
    /// The services that the program has bound, in the order in which they were added.
    var program: [ModuleManifest.Service] = []
    /// The services declared by service files, by path.
    var files: [PathKey: [ModuleManifest.Service]] = [:]

    /// The declared services that are registered in one table, and the reasons why the others are not.
    struct Standing {
        /// The services that are registered and whose targets exist.
        var services: [ServiceEntry] = []
        /// The services that are registered and whose targets belong to registered modules.
        var resting: [Resting] = []
        /// The reasons why services are not registered, by the path of the file, or by ``key(of:)``.
        var refused: [PathKey: PluginError] = [:]
    }

    /// The key, in ``Standing/refused``, of a service that the program has bound; that of a file is its path.
    static func key(of service: ModuleManifest.Service) -> PathKey {
        PathKey("(program) \(service.name) \(service.version) \(service.priority)")
    }

    /// Determines which services are registered. The services of the program come first, one by one, then the service
    /// files in the order of their names, each whole or not at all; anything that conflicts with what comes before it
    /// is left out. The result depends only on what is present, never on the order in which it was added.
    ///
    /// - Parameters:
    ///   - modules: The modules that are started.
    ///   - targets: Their targets.
    ///   - known: The registered modules.
    func standing(
        with modules: [Generation], _ targets: [String: NameTable.TargetEntry], _ known: KnownModules
    ) -> Standing {
        var standing = Standing()
        guard !files.isEmpty || !program.isEmpty else { return standing }
        var others = Others()
        for module in modules {
            for service in module.manifest?.services ?? [] {
                others.enter(service, module.target(service.target), "module \(module.name) (\(module.file))")
            }
        }
        for module in known.modules where !module.outline.services.isEmpty {
            for service in module.manifest.services {
                let target = module.manifest.targets.first { $0.name == service.target }
                others.enter(service, target, "module \(module.name) (\(module.file))")
            }
        }
        func register(_ declared: [ModuleManifest.Service], _ owner: String, file: String?) -> String? {
            var after = others
            for service in declared {
                let target =
                    targets[service.target]?.generation.target(service.target)
                    ?? known.target(service.target)?.declaration
                if let conflict = after.conflict(service, target, owner) { return conflict }
            }
            others = after
            for service in declared {
                if let entry = targets[service.target]?.generation.entry(of: service, in: file) {
                    standing.services.append(entry)
                } else if let target = known.target(service.target) {
                    standing.resting.append(Resting(service: service, module: target.module, file: file))
                }
            }
            return nil
        }
        for service in program {
            guard let conflict = register([service], "the program", file: nil) else { continue }
            standing.refused[Self.key(of: service)] = PluginError(
                .conflict, "The program's service \(service.name) \(service.version) is not registered: \(conflict)")
        }
        for (path, declared) in files.map({ ($0.key.path, $0.value) }).sorted(by: { $0.0.sortsAsFile(before: $1.0) }) {
            guard let conflict = register(declared, "the file \(path)", file: path) else { continue }
            standing.refused[path] = PluginError(
                .conflict, "The services of \(path) are not registered: \(conflict)")
        }
        return standing
    }

    /// The services that are registered so far, to find conflicts with.
    private struct Others {
        private var owners: [ModuleManifest.Service.Key: String] = [:]
        private var offers: [String: [ServiceOffer]] = [:]

        mutating func enter(_ service: ModuleManifest.Service, _ target: ModuleManifest.Target?, _ owner: String) {
            owners[service.key] = owner
            offers[service.name, default: []].append(ServiceOffer(service, by: target, owner: owner))
        }

        /// Enters a service, and returns `nil`; or returns why it conflicts with another one or with its target.
        mutating func conflict(
            _ service: ModuleManifest.Service, _ target: ModuleManifest.Target?, _ owner: String
        ) -> String? {
            let (name, version) = (service.name, service.version)
            if let other = owners[service.key] {
                return
                    "its \(name) \(version) with the priority \(service.priority) is also offered by \(other), which "
                    + "keeps it. Give one of them another priority or version."
            }
            if service.isSingleton, target?.instance == .perCall {
                return "its \(name) is a singleton, and the target \(service.target) makes an instance for each call."
            }
            if let interface = service.interface, let obstacle = target?.actions.obstacle(to: interface) {
                return "the target \(service.target) does not fulfil the interface of the service \(name): \(obstacle)."
            }
            let offer = ServiceOffer(service, by: target, owner: owner)
            for other in offers[name] ?? [] {
                if let conflict = offer.conflict(with: other) { return "\(conflict)." }
            }
            enter(service, target, owner)
            return nil
        }
    }

    /// A service whose target belongs to a registered module, and the file that declares it; `nil` for the program.
    struct Resting: Sendable {
        let service: ModuleManifest.Service
        let module: LoadedModule
        let file: String?
    }

    /// A service, and the file that declares it; `nil` for the program.
    struct Declared: Hashable {
        let service: ModuleManifest.Service
        let file: String?
    }
}

extension Generation {
    fileprivate func target(_ name: String) -> ModuleManifest.Target? { manifest?.targets.first { $0.name == name } }

    /// Returns the service that a file or the program declares for a target of this module; created once per
    /// generation.
    fileprivate func entry(of service: ModuleManifest.Service, in file: String?) -> ServiceEntry? {
        guard let target = target(service.target), let actions = targets[target.name] else { return nil }
        return declaredServices.withLock { entries in
            let declared = DeclaredServices.Declared(service: service, file: file)
            if let entry = entries[declared] { return entry }
            let any = actions.values.first
            let entry = ServiceEntry(
                service, target: target, of: self, actions: actions, instances: any?.instances, gate: any?.gate,
                file: file)
            entries[declared] = entry
            return entry
        }
    }
}
