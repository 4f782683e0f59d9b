import PluginABI
import PluginFile

/// The registered modules of a table: they are known, and start when they are first needed. What they offer is looked
/// up here if no started module offers anything under that name.
final class KnownModules: Sendable {
    static let none = KnownModules([])

    /// The modules in the order in which they would start.
    let modules: [LoadedModule]
    private let byName: [String: LoadedModule]
    private let targets: [String: Target]
    /// The modules that offer services, by the names of the services.
    let services: [String: [LoadedModule]]
    /// The modules that subscribe to events, by the names of the events. Without events of the host, which go only to
    /// modules that are started.
    let subscribers: [String: [LoadedModule]]

    struct Target: Sendable {
        let module: LoadedModule
        private let name: String

        init(_ module: LoadedModule, _ name: String) { (self.module, self.name) = (module, name) }

        var declaration: ModuleManifest.Target {
            module.manifest.targets.first { $0.name == name } ?? ModuleManifest.Target(named: name)
        }
    }

    init(_ modules: [LoadedModule]) {
        self.modules = modules
        var (targets, byName) = ([String: Target](), [String: LoadedModule]())
        targets.reserveCapacity(modules.count)
        byName.reserveCapacity(modules.count)
        var (services, subscribers): ([String: [LoadedModule]], [String: [LoadedModule]]) = ([:], [:])
        for module in modules {
            let outline = module.outline
            if byName[outline.name] == nil { byName[outline.name] = module }
            for name in outline.targets { targets[name] = Target(module, name) }
            for service in outline.services where services[service.name]?.last !== module {
                services[service.name, default: []].append(module)
            }
            for event in outline.events where !event.isHostEvent { subscribers[event, default: []].append(module) }
        }
        (self.targets, self.byName, self.services, self.subscribers) = (targets, byName, services, subscribers)
    }

    func module(named name: String) -> LoadedModule? { byName[name] }

    /// Returns those modules with these names that are known.
    func modules(named names: Set<String>) -> [LoadedModule] { names.sorted().compactMap { byName[$0] } }

    /// Returns these modules without those that have the given names.
    ///
    /// - Parameter names: The names of the modules to leave out. Other names are ignored.
    func without(_ names: Set<String>) -> KnownModules {
        let rest = modules.filter { !names.contains($0.name) }
        return rest.count == modules.count ? self : KnownModules(rest, from: self)
    }

    /// Returns the routes of the modules that `other` does not contain.
    func routes(besides other: KnownModules) -> [RouteEntry] {
        if self === other || modules.isEmpty { return [] }
        return ListChange(from: other.modules, to: modules).new.flatMap(\.routes)
    }

    /// Returns an index of other modules. The index is derived from this one if this one contains most of them.
    func changed(to other: [LoadedModule]) -> KnownModules {
        other.elementsEqual(modules, by: ===) ? self : KnownModules(other, from: self)
    }

    private convenience init(_ modules: [LoadedModule], from before: KnownModules) {
        let change = ListChange(from: before.modules, to: modules)
        if (change.gone.count + change.new.count) * 2 > modules.count {
            self.init(modules)
        } else {
            self.init(modules, from: before, change)
        }
    }

    private init(_ modules: [LoadedModule], from before: KnownModules, _ change: ListChange<LoadedModule>) {
        self.modules = modules
        var (targets, byName) = (before.targets, before.byName)
        var (services, subscribers) = (before.services, before.subscribers)
        for module in change.gone {
            let outline = module.outline
            if byName[module.name] === module { byName[module.name] = nil }
            for name in outline.targets where targets[name]?.module === module { targets[name] = nil }
            for service in outline.services { services.remove(module, service.name) }
            for event in outline.events { subscribers.remove(module, event) }
        }
        for module in change.new {
            let outline = module.outline
            byName[module.name] = module
            for name in outline.targets { targets[name] = Target(module, name) }
            for service in outline.services { services.add(module, service.name, to: modules) }
            for event in outline.events where !event.isHostEvent { subscribers.add(module, event, to: modules) }
        }
        (self.targets, self.byName, self.services, self.subscribers) = (targets, byName, services, subscribers)
    }

    var isEmpty: Bool { modules.isEmpty }

    /// Whether no two modules have the same name, claim the same target, or offer the same service.
    var areDistinct: Bool {
        byName.count == modules.count && targets.count == modules.reduce(0) { $0 + $1.outline.targets.count }
            && services.values.allSatisfy { $0.count == 1 }
    }

    var targetNames: some Collection<String> { targets.keys }

    func target(_ name: String) -> Target? { isEmpty ? nil : targets[name] }

    /// Returns the module that would handle a call, if only by its action `notFound`; `nil` if none would.
    ///
    /// - Parameter isRemote: Whether only remote actions count.
    func module(answering target: plugin_string, _ action: plugin_string, isRemote: Bool = false) -> LoadedModule? {
        if isEmpty { return nil }
        return module(answering: target.text, action.text, isRemote: isRemote)
    }

    /// Returns the stand-in for the action that would handle a remote call; `nil` if none would.
    func remoteEndpoint(_ target: plugin_string, _ action: plugin_string) -> (endpoint: Endpoint, isNotFound: Bool)? {
        guard !isEmpty, let found = self.target(target.text) else { return nil }
        for (name, isNotFound) in [(action.text, false), ("notFound", true)] {
            guard let declared = found.action(name), declared.isRemote else { continue }
            let endpoint = found.module.declaredEndpoint("\(found.declaration.name)/\(name)", declared)
            return endpoint.map { ($0, isNotFound) }
        }
        return nil
    }

    func module(answering target: String, _ action: String, isRemote: Bool = false) -> LoadedModule? {
        guard let found = self.target(target), found.answers(action, isRemote: isRemote) else { return nil }
        return found.module
    }
}

extension [String: [LoadedModule]] {
    fileprivate mutating func remove(_ module: LoadedModule, _ name: String) {
        self[name]?.removeAll { $0 === module }
        if self[name]?.isEmpty == true { self[name] = nil }
    }

    /// - Parameter all: All modules, in order.
    fileprivate mutating func add(_ module: LoadedModule, _ name: String, to all: [LoadedModule]) {
        let present = self[name, default: []]
        let meant = Set((present + [module]).map { ObjectIdentifier($0) })
        self[name] = all.filter { meant.contains(ObjectIdentifier($0)) }
    }
}

extension KnownModules.Target {
    func action(_ name: String) -> ModuleManifest.Action? { declaration.actions.first { $0.name == name } }

    func answers(_ action: String, isRemote: Bool) -> Bool {
        [action, "notFound"].contains { name in self.action(name).map { !isRemote || $0.isRemote } ?? false }
    }
}

extension String {
    /// Whether an event of this name is posted by the host.
    var isHostEvent: Bool { ["host.", "module.", "configuration."].contains { beginsWithBytes(of: $0) } }
}

/// A module whose routes are in the table, whether it is started or only registered.
protocol RouteOwner: AnyObject {
    var name: String { get }
    var routes: [RouteEntry] { get }
}

extension Generation: RouteOwner {}
extension LoadedModule: RouteOwner {}

extension Table {
    /// The modules whose routes are in the table.
    var routeOwners: [any RouteOwner] { contents.routeOwners }
}

extension Table.Contents {
    var routeOwners: [any RouteOwner] {
        known.isEmpty ? generations : generations as [any RouteOwner] + known.modules as [any RouteOwner]
    }
}
