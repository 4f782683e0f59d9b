import PluginABI
import PluginFile

/// The targets, routes and services that modules claim. Each belongs to the module that claimed it first.
struct Claims {
    private struct Owner {
        let name: String
        let file: String
    }

    private var targets: [String: Owner] = [:]
    private var services: [ModuleManifest.Service.Key: Owner] = [:]
    /// The implementations of services, by name.
    private var offers: [String: [ServiceOffer]] = [:]
    private var routes: RouteTable

    /// - Parameters:
    ///   - routes: The routes in effect.
    ///   - program: The services that the program has bound to targets.
    ///   - leaving: The routes in effect that become available.
    init(_ routes: Routes, _ program: [ModuleManifest.Service] = [], without leaving: [RouteEntry] = []) {
        self.routes = routes.table
        for service in program {
            services[service.key] = Owner(name: "the program", file: StagedFile.program.original)
            offers[service.name, default: []].append(ServiceOffer(service, by: nil, owner: "the program"))
        }
        for entry in leaving where self.routes.entry(like: entry.pattern) === entry {
            self.routes.remove(entry)
        }
    }

    /// Enters the targets and services of a module that already serves. Its routes are in effect already.
    mutating func keep(_ manifest: ModuleManifest, _ file: String) {
        let owner = Owner(name: manifest.name, file: file)
        for target in manifest.targets { targets[target.name] = owner }
        for service in manifest.services {
            services[service.key] = owner
            offers[service.name, default: []].append(Self.offer(service, of: manifest, file))
        }
    }

    private static func offer(
        _ service: ModuleManifest.Service, of manifest: ModuleManifest, _ file: String
    ) -> ServiceOffer {
        let target = manifest.targets.first { $0.name == service.target }
        return ServiceOffer(service, by: target, owner: "\(manifest.name) (\(file))")
    }

    /// Enters all claims of a new module, or none of them if another module has one of them.
    ///
    /// - Throws: `conflict`, naming both modules.
    mutating func take(_ module: LoadedModule, _ file: String) throws(PluginError) {
        let (manifest, before) = (module.manifest, routes)
        let name = manifest.name
        for target in manifest.targets {
            guard let owner = targets[target.name] else { continue }
            throw PluginError(
                .conflict,
                "\(name) (\(file)) claims the target \(target.name.shortened), which belongs to \(owner.name) (\(owner.file)). "
                    + "\(owner.name) keeps it; \(name) is not registered.")
        }
        for service in manifest.services {
            guard let owner = services[service.key] else {
                let offer = Self.offer(service, of: manifest, file)
                guard let conflict = offers[service.name]?.lazy.compactMap(offer.conflict).first else { continue }
                throw PluginError(
                    .conflict,
                    "\(conflict). \(name) is not registered. Add what is missing, or give the higher version the next "
                        + "major version.")
            }
            throw PluginError(
                .conflict,
                "\(name) (\(file)) offers the service \(service.name.shortened) \(service.version) with priority "
                    + "\(service.priority), as does \(owner.name) (\(owner.file)). \(owner.name) keeps it; \(name) "
                    + "is not registered. Give one of them another priority or version.")
        }
        for entry in module.routes {
            if routes.isOverridden(entry) { continue }
            while let conflict = routes.insert(entry) {
                guard let other = conflict.other, other.owner.isFile else {
                    routes = before
                    throw .conflict(entry, conflict)
                }
                routes.remove(other)  // Routes of route files yield to those of modules.
            }
        }
        keep(manifest, file)
    }
}
