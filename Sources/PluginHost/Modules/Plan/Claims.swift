import PluginABI
import PluginFile

/// The targets, routes and services that modules claim. Each belongs to the module that claimed it first.
struct Claims {
    struct Owner {
        let name: String
        let file: String
    }

    /// The implementation of a service. What it offers is looked up only if another implementation has the same name.
    private enum Offer {
        case program(ModuleManifest.Service)
        case module(LoadedModule, ModuleManifest.Service.Key, file: String)

        var offer: ServiceOffer? {
            switch self {
            case .program(let service): return ServiceOffer(service, by: nil, owner: "the program")
            case .module(let module, let key, let file):
                let manifest = module.manifest
                return manifest.services.first { $0.key == key }.map { service in
                    let target = manifest.targets.first { $0.name == service.target }
                    return ServiceOffer(service, by: target, owner: "\(manifest.name) (\(file))")
                }
            }
        }
    }

    private var targets: [String: Owner] = [:]
    private var services: [ModuleManifest.Service.Key: Owner] = [:]
    /// The implementations of services, by name.
    private var offers: [String: [Offer]] = [:]
    private var routes: RouteTable
    /// The routes in effect, those of them that become available, and those that were claimed.
    private let routesInEffect: RouteTable
    private let leavingRoutes: [RouteEntry]
    private var claimedRoutes: [RouteEntry] = []
    /// The modules that keep what they claim, although they are not entered here.
    private let others: SettledModules.Others?

    /// - Parameters:
    ///   - routes: The routes in effect.
    ///   - program: The services that the program has bound to targets.
    ///   - leaving: The routes in effect that become available.
    ///   - others: The modules that keep what they claim, although they are not entered.
    init(
        _ routes: Routes, _ program: [ModuleManifest.Service] = [], without leaving: [RouteEntry] = [],
        besides others: SettledModules.Others? = nil
    ) {
        (self.routes, self.others) = (routes.table, others)
        (routesInEffect, leavingRoutes) = (routes.table, leaving)
        for service in program {
            services[service.key] = Owner(name: "the program", file: StagedFile.program.original)
            offers[service.name, default: []].append(.program(service))
        }
        for entry in leaving where self.routes.entry(like: entry.pattern) === entry {
            self.routes.remove(entry)
        }
    }

    /// Prepares for the targets of this many modules.
    mutating func reserveCapacity(_ count: Int) { targets.reserveCapacity(count) }

    /// Enters the targets and services of a module that already serves. Its routes are already in effect.
    mutating func keep(_ module: LoadedModule, _ file: String) {
        let outline = module.outline
        let owner = Owner(name: outline.name, file: file)
        for target in outline.targets { targets[target] = owner }
        for service in outline.services {
            services[service] = owner
            offers[service.name, default: []].append(.module(module, service, file: file))
        }
    }

    /// Enters all claims of a new module, or none of them if another module has one of them.
    ///
    /// - Throws: `conflict`, naming both modules.
    mutating func take(_ module: LoadedModule, _ file: String) throws(PluginError) {
        let outline = module.outline
        let name = outline.name
        for target in outline.targets {
            guard let owner = targets[target] ?? others?.owner(ofTarget: target) else { continue }
            throw PluginError(
                .conflict,
                "\(name) (\(file)) claims the target \(target.shortened), which belongs to \(owner.name) (\(owner.file)). "
                    + "\(owner.name) keeps it; \(name) is not registered.")
        }
        for service in outline.services {
            guard let owner = services[service] ?? others?.owner(of: service) else {
                let present = offers(of: service.name)
                guard !present.isEmpty, let offer = Offer.module(module, service, file: file).offer else { continue }
                let conflicts = present.lazy.compactMap(\.offer).compactMap { other in
                    offer.conflict(with: other).map { (owner: other.owner, text: $0) }
                }
                // The result must not depend on the order of the offers.
                guard let conflict = conflicts.min(by: { ($0.owner, $0.text) < ($1.owner, $1.text) }) else { continue }
                throw PluginError(
                    .conflict,
                    "\(conflict.text). \(name) is not registered. Add what is missing, or give the higher version the next "
                        + "major version.")
            }
            throw PluginError(
                .conflict,
                "\(name) (\(file)) offers the service \(service.name.shortened) \(service.version) with priority "
                    + "\(service.priority), as does \(owner.name) (\(owner.file)). \(owner.name) keeps it; \(name) "
                    + "is not registered. Give one of them another priority or version.")
        }
        try takeRoutes(of: module)
        keep(module, file)
    }

    private func offers(of service: String) -> [Offer] {
        (offers[service] ?? []) + (others?.offers(of: service) ?? []).map { .module($0.module, $0.key, file: $0.file) }
    }

    /// Inserts the routes of a new module, or none of them. The table has one owner, so it is changed in place: a copy
    /// for each module, to be restored on failure, would cost as much as all routes together.
    mutating func takeRoutes(of module: LoadedModule) throws(PluginError) {
        var (inserted, yielded): ([RouteEntry], [RouteEntry]) = ([], [])
        inserted.reserveCapacity(module.routes.count)
        for entry in module.routes where !routes.isOverridden(entry) {
            while let conflict = routes.insert(entry) {
                guard let other = conflict.other, other.owner.isFile else {
                    for entry in inserted { routes.remove(entry) }
                    for entry in yielded { _ = routes.insert(entry, isKnown: true) }
                    throw .conflict(entry, conflict)
                }
                routes.remove(other)  // Routes of route files yield to those of modules.
                yielded.append(other)
            }
            inserted.append(entry)
        }
        claimedRoutes += module.routes
    }

    /// The change of the routes in effect that the claims amount to.
    var routeChange: RouteChange {
        RouteChange(before: routesInEffect, without: leavingRoutes, adding: claimedRoutes, after: routes)
    }
}
