import PluginABI
import PluginFile

/// The registered modules of a table: they are known, and start when they are first needed. What they offer is found
/// here when the table has nothing that is started under that name.
final class KnownModules: Sendable {
    static let none = KnownModules([])

    /// In the order in which they would start.
    let modules: [LoadedModule]
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
        var targets: [String: Target] = [:]
        var (services, subscribers): ([String: [LoadedModule]], [String: [LoadedModule]]) = ([:], [:])
        for module in modules {
            let outline = module.outline
            for name in outline.targets { targets[name] = Target(module, name) }
            for service in outline.services where services[service.name]?.last !== module {
                services[service.name, default: []].append(module)
            }
            for event in outline.events where !event.isHostEvent { subscribers[event, default: []].append(module) }
        }
        (self.targets, self.services, self.subscribers) = (targets, services, subscribers)
    }

    /// Returns these modules without others.
    ///
    /// - Parameter names: The names of the others, which need not be among these.
    func without(_ names: Set<String>) -> KnownModules {
        let rest = modules.filter { !names.contains($0.name) }
        return rest.count == modules.count ? self : KnownModules(rest, of: self)
    }

    /// Returns the routes of the modules that are not among others.
    func routes(besides other: KnownModules) -> [RouteEntry] {
        if self === other || modules.isEmpty { return [] }
        let others = Set(other.modules.map { ObjectIdentifier($0) })
        return modules.filter { !others.contains(ObjectIdentifier($0)) }.flatMap(\.routes)
    }

    /// Returns an index of other modules. It is made from this one if it contains all of them.
    func changed(to other: [LoadedModule]) -> KnownModules {
        if other.elementsEqual(modules, by: ===) { return self }
        let wanted = Set(other.map { ObjectIdentifier($0) })
        let rest = modules.filter { wanted.contains(ObjectIdentifier($0)) }
        return rest.elementsEqual(other, by: ===) ? KnownModules(rest, of: self) : KnownModules(other)
    }

    /// Creates an index of some of the modules of another one.
    private init(_ rest: [LoadedModule], of other: KnownModules) {
        modules = rest
        let present = Set(rest.map { ObjectIdentifier($0) })
        func kept(_ all: [String: [LoadedModule]]) -> [String: [LoadedModule]] {
            all.compactMapValues { modules in
                let kept = modules.filter { present.contains(ObjectIdentifier($0)) }
                return kept.isEmpty ? nil : kept
            }
        }
        (services, subscribers) = (kept(other.services), kept(other.subscribers))
        var targets = other.targets
        for module in other.modules where !present.contains(ObjectIdentifier(module)) {
            for name in module.outline.targets { targets[name] = nil }
        }
        self.targets = targets
    }

    var isEmpty: Bool { modules.isEmpty }

    var targetNames: some Collection<String> { targets.keys }

    func target(_ name: String) -> Target? { isEmpty ? nil : targets[name] }

    /// Returns the module that would answer a call, if only by its action `notFound`; `nil` if none would.
    ///
    /// - Parameter isRemote: Whether only remote actions count.
    func module(answering target: plugin_string, _ action: plugin_string, isRemote: Bool = false) -> LoadedModule? {
        if isEmpty { return nil }
        return module(answering: target.text, action.text, isRemote: isRemote)
    }

    /// Returns the stand-in for the action that would answer a remote call; `nil` if none would.
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

/// A module whose routes are in the table, whether it is started or only known.
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
