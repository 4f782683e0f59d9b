import PluginABI

/// The modules that subscribe to one event.
final class ModuleSubscribers: @unchecked Sendable {
    // Nothing changes after init, and the memory of the name and the list is freed in deinit; hence @unchecked
    // Sendable.

    /// The name of the event.
    private let event: plugin_string
    /// The handlers in the order of the modules. The endpoints are never freed; the list is freed with this object.
    let endpoints: UnsafeBufferPointer<Unmanaged<Endpoint>>
    /// Whether all of them are synchronous, and none is still to be started.
    let areSynchronous: Bool

    private init(_ event: String, _ endpoints: [Endpoint], isComplete: Bool) {
        self.event = plugin_string(allocating: event)
        let memory = UnsafeMutableBufferPointer<Unmanaged<Endpoint>>.allocate(capacity: endpoints.count)
        _ = memory.initialize(from: endpoints.lazy.map(Unmanaged.passUnretained))
        self.endpoints = UnsafeBufferPointer(memory)
        areSynchronous = isComplete && !endpoints.contains(where: \.isAsync)
    }

    deinit {
        event.deallocate()
        endpoints.deallocate()
    }

    /// Returns the subscribers of each event among these modules.
    ///
    /// - Parameter known: The registered modules, whose events have an entry even if no module of the others subscribes.
    static func index(of generations: [Generation], besides known: KnownModules) -> NameIndex<ModuleSubscribers> {
        var endpoints: [String: [Endpoint]] = [:]
        for generation in generations {
            for (event, endpoint) in generation.subscriptions { endpoints[event, default: []].append(endpoint) }
        }
        for event in known.subscribers.keys where endpoints[event] == nil { endpoints[event] = [] }
        let all = endpoints.map { event, endpoints in
            ModuleSubscribers(event, endpoints, isComplete: known.subscribers[event] == nil)
        }
        return NameIndex(all, by: \.event)
    }
}

extension Table {
    /// Returns the modules that subscribe to an event, in the order of the modules.
    func moduleSubscribers(of event: String) -> [Endpoint] {
        withExtendedLifetime(self) {
            event.withPluginString { subscribers(of: $0) }?._withUnsafeGuaranteedRef { subscribers in
                subscribers.endpoints.map { $0.takeUnretainedValue() }
            } ?? []
        }
    }

    /// Returns another generation of the same module.
    func successor(of generation: Generation) -> Generation? {
        generations.first { $0.name == generation.name && $0 !== generation }
    }
}
