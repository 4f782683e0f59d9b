import PluginABI
import PluginFile
import Synchronization

/// The services declared by service files, by path. Which of them are registered is determined for each table.
struct ServiceFiles: Sendable, Equatable {
    var files: [PathKey: [ModuleManifest.Service]] = [:]

    /// Returns the services of files whose targets exist, and the reasons why files were refused.
    ///
    /// A file is registered whole or not at all. Files are considered in the order of their names, and one is refused
    /// if it conflicts with a module or an earlier file. The result depends only on what is present, never on the order
    /// in which it was added.
    func standing(
        with modules: [Generation], _ targets: [String: NameTable.TargetEntry]
    ) -> (services: [ServiceEntry], refused: [PathKey: PluginError]) {
        guard !files.isEmpty else { return ([], [:]) }
        var taken: [Key: String] = [:]
        for module in modules {
            for service in module.services { taken[Key(service)] = "module \(module.name) (\(module.file))" }
        }
        var services: [ServiceEntry] = []
        var refused: [PathKey: PluginError] = [:]
        for (path, declared) in files.map({ ($0.key.path, $0.value) }).sorted(by: { $0.0.sortsAsFile(before: $1.0) }) {
            if let conflict = conflict(declared, of: path, taken, targets) {
                refused[path] = conflict
                continue
            }
            for service in declared {
                taken[Key(service)] = "the file \(path)"
                if let entry = targets[service.target]?.generation.entry(of: service, in: path) {
                    services.append(entry)
                }
            }
        }
        return (services, refused)
    }

    private func conflict(
        _ declared: [ModuleManifest.Service], of path: String, _ taken: [Key: String],
        _ targets: [String: NameTable.TargetEntry]
    ) -> PluginError? {
        for service in declared {
            if let other = taken[Key(service)] {
                return PluginError(
                    .conflict,
                    "The services of \(path) are not registered: its \(service.name) \(service.version) with the "
                        + "priority \(service.priority) is also offered by \(other), which keeps it. Give one of them "
                        + "another priority or version.")
            }
            if service.isSingleton,
                targets[service.target]?.generation.makesInstances(forEachCallOf: service.target) == true
            {
                return PluginError(
                    .conflict,
                    "The services of \(path) are not registered: its \(service.name) is a singleton, and the target "
                        + "\(service.target) makes an instance for each call.")
            }
        }
        return nil
    }

    /// A service, and the file that declares it.
    struct Declared: Hashable {
        let service: ModuleManifest.Service
        let file: String
    }

    /// The combination that only one service can have.
    private struct Key: Hashable {
        let name: String
        let version: SemanticVersion
        let priority: Int

        init(_ service: ServiceEntry) {
            (name, version, priority) = (service.name, service.version, service.priority)
        }

        init(_ service: ModuleManifest.Service) {
            (name, version, priority) = (service.name, service.version, service.priority)
        }
    }
}

extension Generation {
    /// Returns the service that a file declares for a target of this module; created once per generation.
    fileprivate func entry(of service: ModuleManifest.Service, in file: String) -> ServiceEntry? {
        guard let target = manifest?.targets.first(where: { $0.name == service.target }),
            let actions = targets[target.name]
        else { return nil }
        return servicesOfFiles.withLock { entries in
            let declared = ServiceFiles.Declared(service: service, file: file)
            if let entry = entries[declared] { return entry }
            let any = actions.values.first
            let entry = ServiceEntry(
                service, target: target, of: self, actions: actions, instances: any?.instances, gate: any?.gate,
                file: file)
            entries[declared] = entry
            return entry
        }
    }

    fileprivate func makesInstances(forEachCallOf target: String) -> Bool {
        manifest?.targets.contains { $0.name == target && $0.instance == .perCall } == true
    }
}
