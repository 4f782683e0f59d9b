import PluginABI

/// The modules that subscribe to one event.
final class ModuleSubscribers: @unchecked Sendable {
    // Nothing changes after init, and the memory of the name and the list is freed in deinit; hence @unchecked
    // Sendable.

    /// The name of the event.
    private let event: plugin_string
    /// The handlers in the order of the modules. The endpoints are never freed; the list is freed with this object.
    let endpoints: UnsafeBufferPointer<Unmanaged<Endpoint>>
    /// Whether all subscribers are synchronous, and no registered module subscribes to the event.
    let areSynchronous: Bool

    private init(_ event: String, _ endpoints: [Unmanaged<Endpoint>], areSynchronous: Bool) {
        self.event = plugin_string(allocating: event)
        let memory = UnsafeMutableBufferPointer<Unmanaged<Endpoint>>.allocate(capacity: endpoints.count)
        _ = memory.initialize(from: endpoints)
        self.endpoints = UnsafeBufferPointer(memory)
        self.areSynchronous = areSynchronous
    }

    deinit {
        event.deallocate()
        endpoints.deallocate()
    }

    /// Returns the subscribers of each event among these modules.
    ///
    /// - Parameter known: The registered modules. An event to which one of them subscribes has an entry even if none of
    ///   the others subscribes to it.
    static func index(of generations: [Generation], besides known: KnownModules) -> NameIndex<ModuleSubscribers> {
        var endpoints: [String: [Endpoint]] = [:]
        for generation in generations {
            for (event, endpoint) in generation.subscriptions { endpoints[event, default: []].append(endpoint) }
        }
        for event in known.subscribers.keys where endpoints[event] == nil { endpoints[event] = [] }
        let all = endpoints.map { event, endpoints in
            ModuleSubscribers(
                event, endpoints.map(Unmanaged.passUnretained),
                areSynchronous: known.subscribers[event] == nil && !endpoints.contains(where: \.isAsync))
        }
        return NameIndex(all, by: \.event)
    }

    /// Returns the subscribers of each event after a change of a few modules.
    ///
    /// - Parameters:
    ///   - before: The subscribers before the change.
    ///   - change: The difference from the generations before the change, which does not move others.
    ///   - events: The events of the registered modules that the change concerns.
    static func index(
        of generations: [Generation], besides known: KnownModules, from before: NameIndex<ModuleSubscribers>,
        _ change: ModuleChange, events: [String]
    ) -> NameIndex<ModuleSubscribers> {
        let own = (change.gone + change.new).flatMap(\.subscriptions.keys)
        var (gone, new): ([ModuleSubscribers], [ModuleSubscribers]) = ([], [])
        for event in Set(own + events) {
            let old = event.withPluginString { before.find($0)?.takeUnretainedValue() }
            if let old { gone.append(old) }
            let endpoints =
                old.map { $0.endpoints(of: event, change, among: generations) }
                ?? change.new.compactMap { $0.subscriptions[event].map(Unmanaged.passUnretained) }
            let isComplete = known.subscribers[event] == nil
            guard !endpoints.isEmpty || !isComplete else { continue }
            let unchecked = old?.areSynchronous == true ? [] : endpoints
            let areSynchronous =
                isComplete && !unchecked.contains { $0.takeUnretainedValue().isAsync }
                && !change.new.contains { $0.subscriptions[event]?.isAsync == true }
            new.append(ModuleSubscribers(event, endpoints, areSynchronous: areSynchronous))
        }
        return NameIndex(before, without: gone, adding: new, by: \.event)
    }

    /// Returns the handlers of the event after a change of modules, in the order of the modules.
    private func endpoints(
        of event: String, _ change: ModuleChange, among generations: [Generation]
    ) -> [Unmanaged<Endpoint>] {
        var endpoints = Array(self.endpoints)
        func position(of generation: Generation) -> Int? {
            guard let own = generation.subscriptions[event] else { return nil }
            return endpoints.firstIndex { $0.toOpaque() == Unmanaged.passUnretained(own).toOpaque() }
        }
        for generation in change.gone { if let place = position(of: generation) { endpoints.remove(at: place) } }
        for generation in change.new {
            guard let own = generation.subscriptions[event],
                var index = generations.firstIndex(where: { $0 === generation })
            else { continue }
            // Behind the nearest subscriber before it.
            var place = 0
            while index > 0, place == 0 {
                index -= 1
                if let nearest = position(of: generations[index]) { place = nearest + 1 }
            }
            endpoints.insert(.passUnretained(own), at: place)
        }
        return endpoints
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
