import PluginABI
import PluginFile

/// One service in the registry: a name and a version, and the target that implements it. Never freed.
final class ServiceEntry: @unchecked Sendable {
    // Nothing changes after init, including the memory that is pointed to; hence @unchecked Sendable.

    let name: String
    let version: SemanticVersion
    let target: String
    let priority: Int
    let isSingleton: Bool
    let info: ServiceInfo
    /// The actions that callers can use: those of its interface or, if it has none, those of its target.
    let actions: [String: Endpoint]
    /// ``actions``, for lookups by the bytes of a name, which create no String.
    let endpoints: NameIndex<Endpoint>
    /// The names of service and target, in the form of the binary interface.
    let nameBytes: plugin_string
    let targetName: plugin_string
    /// The description that modules receive: a map, laid out once and never freed.
    let told: plugin_value
    /// The factory of objects with an instance of their own; `nil` if all callers share one instance, or there are no
    /// instances.
    let maker: ServiceFactory?
    private unowned(unsafe) let owner: Generation  // Never freed.

    var generation: Generation { owner }

    /// - Parameters:
    ///   - actions: The actions of the target.
    ///   - file: The service file that declares it; `nil` if the manifest of the module or the program does.
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
        let actions =
            service.interface.map { interface in
                let names = Set(interface.map(\.name))
                return actions.filter { names.contains($0.key) }
            } ?? actions
        self.actions = actions
        endpoints = NameIndex(Array(actions.values)) { $0.name(after: target.name) }
        nameBytes = .immortal(service.name)
        targetName = .immortal(target.name)
        let description = Self.description(of: service, in: generation.name, declaredIn: file)
        info = ServiceInfo(.map(description))
        told = .immortal(.map(description))
        let own = service.isSingleton ? nil : instances
        maker = own.map { ServiceFactory(service, actions, of: generation, $0, gate) }
    }

    /// Returns the description that callers receive.
    ///
    /// - Parameter file: The service file that declares it; `nil` if the manifest of the module or the program does.
    static func description(
        of service: ModuleManifest.Service, in module: String, declaredIn file: String?
    ) -> [String: Value] {
        var description: [String: Value] = [
            "name": .string(service.name), "version": .string(service.version.description), "module": .string(module),
            "target": .string(service.target), "priority": .int(service.priority),
            "singleton": .bool(service.isSingleton), "summary": .string(service.summary),
        ]
        if let file { description["file"] = .string(file) }
        return description
    }

    /// Returns the services grouped by name, each group in the order of preference: the highest version, then the
    /// highest priority.
    static func byName(_ services: [ServiceEntry]) -> [String: [ServiceEntry]] {
        Dictionary(grouping: services, by: \.name).mapValues(inOrder)
    }

    /// Returns services of one name in the order of preference.
    static func inOrder(_ services: [ServiceEntry]) -> [ServiceEntry] {
        services.sorted { ($0.version, $0.priority) > ($1.version, $1.priority) }
    }

    /// Returns an index of the preferred service of each name, except for names that registered modules also offer.
    ///
    /// - Parameters:
    ///   - known: The registered modules that offer services, by the names of the services.
    ///   - names: The names that may have other services than in `before`.
    static func index(
        of services: [String: [ServiceEntry]], besides known: [String: [LoadedModule]], _ names: Set<String>,
        from before: NameIndex<ServiceEntry>
    ) -> NameIndex<ServiceEntry> {
        var (gone, new): ([ServiceEntry], [ServiceEntry]) = ([], [])
        for name in names {
            let old = name.withPluginString { before.find($0)?.takeUnretainedValue() }
            let next = known[name] == nil ? services[name]?.first : nil
            guard old !== next else { continue }
            if let old { gone.append(old) }
            if let next { new.append(next) }
        }
        if gone.isEmpty, new.isEmpty { return before }
        return NameIndex(before, without: gone, adding: new, by: \.nameBytes)
    }

    /// Returns an index of the preferred service of each name.
    static func index(of services: [String: [ServiceEntry]]) -> NameIndex<ServiceEntry> {
        NameIndex(services.values.compactMap(\.first), by: \.nameBytes)
    }
}

extension DeclaredServices.Resting {
    /// The entry of the service in lists.
    var info: ServiceInfo {
        ServiceInfo(.map(ServiceEntry.description(of: service, in: module.name, declaredIn: file)))
    }
}

extension ServiceEntry {
    /// The error of a call of an action that the service does not have.
    func unknownAction(_ action: String) -> PluginError {
        let owner = "The service \(name) \(version) of \(generation.name)"
        guard actions[action] == nil, generation.targets[target]?[action] != nil else {
            return .unknownAction(action, of: owner, actions.keys)
        }
        return PluginError(
            .unknownAction,
            "\(owner) has no action “\(action.shortened)”: its target \(target) has one, but its interface does not "
                + "declare it.")
    }
}

extension Table {
    /// Returns the preferred service of a name, if its version is at least `smallest`.
    func service(_ name: String, from smallest: SemanticVersion?) -> ServiceEntry? {
        guard knownServices[name] == nil, let best = services[name]?.first, smallest.map({ best.version >= $0 }) ?? true
        else { return nil }
        return best
    }

    /// Returns the preferred service of a name given as bytes. The entry is never freed.
    @inline(__always)
    func service(_ name: plugin_string, from smallest: SemanticVersion?) -> Unmanaged<ServiceEntry>? {
        guard let best = serviceIndex.find(name) else { return nil }
        guard let smallest else { return best }
        return best._withUnsafeGuaranteedRef { $0.version >= smallest } ? best : nil
    }

    /// Returns the error that explains why there is no such service.
    func missingService(_ name: String, from smallest: SemanticVersion?) -> PluginError {
        if isStopped {
            return PluginError(
                .hostStopped,
                "The host has been shut down: the service “\(name.shortened)” cannot be called.")
        }
        let wanted = smallest.map { ", version \($0) or higher" } ?? ""
        guard let found = services[name] else {
            if let absence = absences.ofService(name) { return absence.error("The service “\(name.shortened)”") }
            return PluginError(
                .unknownService,
                "No module offers the service “\(name.shortened)”\(wanted).\(didYouMean(name, Set(services.keys).union(knownServices.keys)))"
            )
        }
        let versions = found.map { "\($0.version) of \($0.generation.name)" }.joined(separator: ", ")
        return PluginError(
            .unknownService, "No module offers the service “\(name.shortened)”\(wanted). Available: \(versions).")
    }
}
