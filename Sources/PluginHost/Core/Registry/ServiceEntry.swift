import CPluginABI
import PluginABI
import PluginFile

/// One service as the registry has it: a name and a version, and the target that implements it. Never freed.
final class ServiceEntry: @unchecked Sendable {
    // Nothing changes after init, what is pointed to included, hence @unchecked Sendable.

    let name: String
    let version: SemanticVersion
    let target: String
    let priority: Int
    let isSingleton: Bool
    let info: ServiceInfo
    let actions: [String: Endpoint]
    /// The names of service and target, as they cross the border.
    let nameBytes: plugin_string
    let targetName: plugin_string
    /// What the border says about it: a map, laid out once and never freed.
    let told: plugin_value
    /// Makes objects that have an instance of their own; nil where all callers share one, or there are no instances.
    let maker: ServiceFactory?
    private unowned(unsafe) let owner: Generation  // Never freed.

    var generation: Generation { owner }

    /// - Parameter file: The service file that declares it; nil for the manifest of the module.
    init(
        _ service: ModuleManifest.Service, target: ModuleManifest.Target, of generation: Generation,
        actions: [String: Endpoint], instances: InstanceProvider?, gate: SerialGate?, file: String? = nil
    ) {
        name = service.name
        version = service.version
        self.target = target.name
        priority = service.priority
        isSingleton = service.isSingleton
        owner = generation
        self.actions = actions
        nameBytes = .immortal(service.name)
        targetName = .immortal(target.name)
        var description: [String: Value] = [
            "name": .string(name), "version": .string(version.description), "module": .string(generation.name),
            "target": .string(target.name), "priority": .int(priority), "singleton": .bool(isSingleton),
            "summary": .string(service.summary),
        ]
        if let file { description["file"] = .string(file) }
        info = ServiceInfo(.map(description))
        told = .immortal(.map(description))
        let own = service.isSingleton ? nil : instances
        maker = own.map { ServiceFactory(service, actions, of: generation, $0, gate) }
    }

    /// Services by their names; of each name the one that serves first: the highest version, then the
    /// highest priority.
    static func byName(_ services: [ServiceEntry]) -> [String: [ServiceEntry]] {
        Dictionary(grouping: services, by: \.name).mapValues { services in
            services.sorted { ($0.version, $0.priority) > ($1.version, $1.priority) }
        }
    }

    /// Of each name the one that serves first.
    static func index(of services: [String: [ServiceEntry]]) -> NameIndex<ServiceEntry> {
        NameIndex(services.values.compactMap(\.first), by: \.nameBytes)
    }
}

extension Table {
    /// The best service of a name, if one has at least a version.
    func service(_ name: String, from smallest: SemanticVersion?) -> ServiceEntry? {
        guard let best = services[name]?.first, smallest.map({ best.version >= $0 }) ?? true else { return nil }
        return best
    }

    /// The same by the bytes of a name; never freed.
    @inline(__always)
    func service(_ name: plugin_string, from smallest: SemanticVersion?) -> Unmanaged<ServiceEntry>? {
        guard let best = serviceIndex.find(name) else { return nil }
        guard let smallest else { return best }
        return best._withUnsafeGuaranteedRef { $0.version >= smallest } ? best : nil
    }

    /// Why there is no such service.
    func missingService(_ name: String, from smallest: SemanticVersion?) -> PluginError {
        if isStopped {
            return PluginError(
                .hostStopped,
                "The host has been shut down: the service “\(name.shortened)” cannot be called.")
        }
        let wanted = smallest.map { " from version \($0) on" } ?? ""
        guard let found = services[name] else {
            if let absence = absences.ofService(name) { return absence.error("The service “\(name.shortened)”") }
            return PluginError(
                .unknownService,
                "No module offers the service “\(name.shortened)”\(wanted).\(didYouMean(name, services.keys))")
        }
        let versions = found.map { "\($0.version) of \($0.generation.name)" }.joined(separator: ", ")
        return PluginError(
            .unknownService, "No module offers the service “\(name.shortened)”\(wanted). There is \(versions).")
    }
}
