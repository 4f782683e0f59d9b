import PluginABI
import PluginFile
import Synchronization

/// An immutable snapshot of everything that can be called.
final class Table: Sendable {
    /// The number of the table, counted from 1 across the process; no two tables have the same number.
    let number = lastNumber.add(1, ordering: .relaxed).newValue
    private static let lastNumber = Atomic<UInt64>(0)
    /// The number of tables that exist in the process.
    static let count = Atomic<Int>(0)
    let contents: Contents
    /// The actions by name. Shared by all tables with the same modules.
    private let names: NameTable
    /// The services by name, each list in the order of preference.
    let services: [String: [ServiceEntry]]
    /// The reasons why services of files and of the program are not registered.
    let refusedServices: [PathKey: PluginError]
    /// The interceptors that modules offer, by module and name: `Module~name`.
    let interceptors: [String: Endpoint]
    /// The modules that subscribe to events, by the names of the events.
    private let subscribers: NameIndex<ModuleSubscribers>
    /// The preferred service of each name, found without creating a String.
    let serviceIndex: NameIndex<ServiceEntry>
    /// The services of files and of the program whose targets belong to registered modules.
    let restingServices: [DeclaredServices.Resting]
    /// The registered modules that must be started before a service is looked up, by the name of the service.
    let knownServices: [String: [LoadedModule]]
    /// The dead routes, once they have been looked for.
    private let knownDeadRoutes = Mutex<[DeadRoute]?>(nil)

    /// The parts that a table is built from.
    struct Contents: Sendable {
        /// The modules that serve, in order. Keeps them alive.
        var generations: [Generation] = []
        /// The modules that start when they are first needed.
        var known = KnownModules.none
        /// Every registered route.
        var routes = Routes()
        /// The services declared by the program and by service files, registered or not.
        var declaredServices = DeclaredServices()
        /// The interceptors around calls; `nil` if there are none.
        var interception: Interception?
        /// The unavailable modules.
        var absences = UnavailableModules()
        /// Whether the host has been shut down.
        var isStopped = false
    }

    init() {
        Self.count.add(1, ordering: .relaxed)
        contents = Contents()
        names = NameTable([])
        (services, refusedServices) = ([:], [:])
        (knownServices, restingServices) = ([:], [])
        interceptors = [:]
        subscribers = ModuleSubscribers.index(of: [], besides: .none)
        serviceIndex = ServiceEntry.index(of: [:])
    }

    deinit { Self.count.subtract(1, ordering: .relaxed) }

    private init(_ contents: Contents, from before: Table, or proposed: Table?, routes: RouteChange?) {
        Self.count.add(1, ordering: .relaxed)
        let generations = contents.generations
        let hasOtherKnown = contents.known !== before.contents.known
        let hasOtherGenerations = !generations.elementsEqual(before.generations, by: ===)
        let hasOtherModules = hasOtherKnown || hasOtherGenerations
        let change = ModuleChange(from: before.generations, to: generations)
        var contents = contents
        if hasOtherModules {
            contents.routes = contents.routes.with(
                contents.routeOwners,
                without: change.gone.flatMap(\.routes) + before.contents.known.routes(besides: contents.known),
                adding: change.new.flatMap(\.routes) + contents.known.routes(besides: before.contents.known),
                as: routes)
        }
        self.contents = contents
        let knownChange = ListChange(from: before.contents.known.modules, to: contents.known.modules)
        let otherEvents = hasOtherKnown ? (knownChange.gone + knownChange.new).flatMap(\.outline.events) : []
        let known = [before, proposed].lazy.compactMap(\.self).first {
            $0.contents.known === contents.known && generations.elementsEqual($0.generations, by: ===)
        }
        names = known?.names ?? (hasOtherGenerations ? before.names.changed(to: generations, change) : before.names)
        interceptors =
            known?.interceptors
            ?? (change.leaves(\.interceptors.isEmpty) ? before.interceptors : Self.interceptors(of: generations))
        subscribers =
            known?.subscribers
            ?? Self.subscribers(of: generations, besides: contents.known, from: before, change, events: otherEvents)
        let hasOtherServices =
            hasOtherKnown
            || hasOtherModules
                && !(change.leaves(\.services.isEmpty) && contents.declaredServices == DeclaredServices())
        let hasDeclaredServices =
            contents.declaredServices != DeclaredServices() || before.declaredServices != DeclaredServices()
        if let known, known.declaredServices == contents.declaredServices {
            (services, serviceIndex) = (known.services, known.serviceIndex)
            (refusedServices, restingServices) = (known.refusedServices, known.restingServices)
            knownServices = known.knownServices
        } else if hasOtherServices, !hasDeclaredServices {
            (refusedServices, restingServices, knownServices) = ([:], [], contents.known.services)
            var (services, names) = (before.services, Set<String>())
            for service in change.gone.lazy.flatMap(\.services) {
                names.insert(service.name)
                services[service.name]?.removeAll { $0 === service }
            }
            for service in change.new.lazy.flatMap(\.services) {
                names.insert(service.name)
                services[service.name] = ServiceEntry.inOrder(services[service.name, default: []] + [service])
            }
            for name in names where services[name]?.isEmpty == true { services[name] = nil }
            for module in knownChange.gone + knownChange.new { names.formUnion(module.outline.services.map(\.name)) }
            self.services = services
            serviceIndex = ServiceEntry.index(of: services, besides: knownServices, names, from: before.serviceIndex)
        } else if hasOtherServices || contents.declaredServices != before.declaredServices {
            let standing = contents.declaredServices.standing(with: generations, names.targets, contents.known)
            refusedServices = standing.refused
            restingServices = standing.resting
            var known = contents.known.services
            for resting in standing.resting { known[resting.service.name, default: []].append(resting.module) }
            knownServices = known
            services = ServiceEntry.byName(generations.flatMap(\.services) + standing.services)
            // A service that a registered module offers, too, is looked up when that module is started.
            serviceIndex = ServiceEntry.index(of: services.filter { known[$0.key] == nil })
        } else {
            (knownServices, restingServices) = (before.knownServices, before.restingServices)
            (services, refusedServices) = (before.services, before.refusedServices)
            serviceIndex = before.serviceIndex
        }
    }

    /// - Parameter events: The events of the registered modules that are added or removed.
    private static func subscribers(
        of generations: [Generation], besides known: KnownModules, from before: Table, _ change: ModuleChange,
        events: [String]
    ) -> NameIndex<ModuleSubscribers> {
        if events.isEmpty, change.leaves(\.subscriptions.isEmpty) { return before.subscribers }
        guard change.keepsOrder, events.count <= 16, change.isSmall(among: generations) else {
            return ModuleSubscribers.index(of: generations, besides: known)
        }
        return ModuleSubscribers.index(
            of: generations, besides: known, from: before.subscribers, change, events: events)
    }

    private static func interceptors(of generations: [Generation]) -> [String: Endpoint] {
        var interceptors: [String: Endpoint] = [:]
        for generation in generations where !generation.interceptors.isEmpty {
            for (name, endpoint) in generation.interceptors { interceptors["\(generation.name)~\(name)"] = endpoint }
        }
        return interceptors
    }

    /// Returns a table with the changes that `change` makes. Everything that does not change is shared.
    ///
    /// - Parameters:
    ///   - proposed: A table that may have the same modules. If so, everything that depends only on the modules is shared
    ///     with it.
    ///   - routes: A change of the routes that may be the one that `change` brings about. If so, it is not made again.
    func changed(
        sharing proposed: Table? = nil, routes: RouteChange? = nil, _ change: (inout Contents) -> Void
    ) -> Table {
        var contents = contents
        change(&contents)
        return Table(contents, from: self, or: proposed, routes: routes)
    }

    /// Returns the endpoint of an action, if there is one. The names need not be valid UTF-8.
    @inline(__always)
    func find(_ target: plugin_string, _ action: plugin_string) -> Unmanaged<Endpoint>? { names.find(target, action) }

    /// Returns the modules that subscribe to an event; valid only while the table lives. The name need not be valid
    /// UTF-8.
    func subscribers(of event: plugin_string) -> Unmanaged<ModuleSubscribers>? { subscribers.find(event) }

    /// Returns the modules that subscribe to an event, for callers that have already hashed the name.
    @inline(__always)
    func subscribers(of event: plugin_string, hash: UInt64) -> Unmanaged<ModuleSubscribers>? {
        subscribers.find(event, hash: hash)
    }

    /// Returns the dead routes, which are found once for each table.
    func deadRoutes(finding find: (Table) -> [DeadRoute]) -> [DeadRoute] {
        if let known = knownDeadRoutes.withLock({ $0 }) { return known }
        let found = find(self)
        knownDeadRoutes.withLock { $0 = found }
        return found
    }

    /// The actions by target, for errors and lists.
    var targets: [String: NameTable.TargetEntry] { names.targets }
}

extension Table {
    var generations: [Generation] { contents.generations }
    var routes: Routes { contents.routes }
    var declaredServices: DeclaredServices { contents.declaredServices }
    var interception: Interception? { contents.interception }
    var absences: UnavailableModules { contents.absences }
    var isStopped: Bool { contents.isStopped }
}
