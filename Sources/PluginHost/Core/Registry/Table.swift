import CPluginABI
import PluginABI
import PluginFile
import Synchronization

/// Everything that can be called, immutable.
final class Table: Sendable {
    /// Counts the tables of the process, from 1; no two have the same.
    let number = lastNumber.add(1, ordering: .relaxed).newValue
    private static let lastNumber = Atomic<UInt64>(0)
    /// How many there are in the process.
    static let count = Atomic<Int>(0)
    let contents: Contents
    /// Shared by all tables with the same modules.
    private let names: NameTable
    /// By name; of each the one that serves first.
    let services: [String: [ServiceEntry]]
    /// The service files whose services do not stand, and why.
    let refusedServiceFiles: [PathKey: PluginError]
    /// What modules offer to put around calls, by module and name: `Module~name`.
    let interceptors: [String: Endpoint]
    /// The modules that subscribe to events, by their names.
    private let subscribers: NameIndex<ModuleSubscribers>
    /// The services that serve first, to be found without a String.
    let serviceIndex: NameIndex<ServiceEntry>

    /// What a table is made of.
    struct Contents: Sendable {
        /// The modules that it serves, in their order; it keeps them alive.
        var generations: [Generation] = []
        /// Every route that stands.
        var routes = Routes()
        /// What service files say, whether it stands or not.
        var serviceFiles = ServiceFiles()
        /// What stands around calls; nil where nothing does.
        var interception: Interception?
        /// Who is known and not served.
        var absences = UnavailableModules()
        /// Whether the host has been shut down.
        var isStopped = false
    }

    init() {
        Self.count.add(1, ordering: .relaxed)
        contents = Contents()
        names = NameTable([])
        (services, refusedServiceFiles) = ([:], [:])
        interceptors = [:]
        subscribers = ModuleSubscribers.index(of: [])
        serviceIndex = ServiceEntry.index(of: [:])
    }

    deinit { Self.count.subtract(1, ordering: .relaxed) }

    private init(_ contents: Contents, from before: Table, or proposed: Table?) {
        Self.count.add(1, ordering: .relaxed)
        let generations = contents.generations
        let hasOtherModules = !generations.elementsEqual(before.generations, by: ===)
        var contents = contents
        if hasOtherModules { contents.routes = contents.routes.with(generations, insteadOf: before.generations) }
        self.contents = contents
        let known = [before, proposed].lazy.compactMap(\.self).first {
            generations.elementsEqual($0.generations, by: ===)
        }
        names = known?.names ?? NameTable(generations)
        interceptors = known?.interceptors ?? Self.interceptors(of: generations)
        subscribers = known?.subscribers ?? ModuleSubscribers.index(of: generations)
        if hasOtherModules || contents.serviceFiles != before.serviceFiles {
            let ofFiles: [ServiceEntry]
            (ofFiles, refusedServiceFiles) = contents.serviceFiles.standing(with: generations, names.targets)
            services = ServiceEntry.byName(generations.flatMap(\.services) + ofFiles)
            serviceIndex = ServiceEntry.index(of: services)
        } else {
            (services, refusedServiceFiles) = (before.services, before.refusedServiceFiles)
            serviceIndex = before.serviceIndex
        }
    }

    private static func interceptors(of generations: [Generation]) -> [String: Endpoint] {
        var interceptors: [String: Endpoint] = [:]
        for generation in generations where !generation.interceptors.isEmpty {
            for (name, endpoint) in generation.interceptors { interceptors["\(generation.name)~\(name)"] = endpoint }
        }
        return interceptors
    }

    /// The same, but for what `change` does. What is not concerned is shared.
    ///
    /// - Parameter proposed: A table that may have the same modules, to share what is theirs alone.
    func changed(sharing proposed: Table? = nil, _ change: (inout Contents) -> Void) -> Table {
        var contents = contents
        change(&contents)
        return Table(contents, from: self, or: proposed)
    }

    /// The endpoint of an action, if there is one. Never fails on any bytes.
    @inline(__always)
    func find(_ target: plugin_string, _ action: plugin_string) -> Unmanaged<Endpoint>? { names.find(target, action) }

    /// The modules that subscribe to an event; only while the table lives. Never fails on any bytes.
    func subscribers(of event: plugin_string) -> Unmanaged<ModuleSubscribers>? { subscribers.find(event) }

    /// The same, for who has hashed the name.
    @inline(__always)
    func subscribers(of event: plugin_string, hash: UInt64) -> Unmanaged<ModuleSubscribers>? {
        subscribers.find(event, hash: hash)
    }

    /// What the names lead to, for errors and lists.
    var targets: [String: NameTable.TargetEntry] { names.targets }
}

extension Table {
    var generations: [Generation] { contents.generations }
    var routes: Routes { contents.routes }
    var serviceFiles: ServiceFiles { contents.serviceFiles }
    var interception: Interception? { contents.interception }
    var absences: UnavailableModules { contents.absences }
    var isStopped: Bool { contents.isStopped }
}
