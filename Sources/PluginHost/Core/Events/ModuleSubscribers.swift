import CPluginABI
import CPluginHost
import Foundation
import Glibc
import PluginABI
import Synchronization

/// The modules that subscribe to one event.
final class ModuleSubscribers: @unchecked Sendable {
    // Nothing changes after init, and the memory of the name and of the list is freed in deinit; hence @unchecked
    // Sendable.

    /// The name of the event.
    private let event: plugin_string
    /// In the order of the modules. They are never freed; this list of them is, with the object.
    let endpoints: UnsafeBufferPointer<Unmanaged<Endpoint>>
    /// Whether none of them is asynchronous.
    let areSynchronous: Bool

    private init(_ event: String, _ endpoints: [Endpoint]) {
        self.event = plugin_string(allocating: event)
        let memory = UnsafeMutableBufferPointer<Unmanaged<Endpoint>>.allocate(capacity: endpoints.count)
        _ = memory.initialize(from: endpoints.lazy.map(Unmanaged.passUnretained))
        self.endpoints = UnsafeBufferPointer(memory)
        areSynchronous = !endpoints.contains(where: \.isAsync)
    }

    deinit {
        event.deallocate()
        endpoints.deallocate()
    }

    /// Who gets which event, of these modules.
    static func index(of generations: [Generation]) -> NameIndex<ModuleSubscribers> {
        var endpoints: [String: [Endpoint]] = [:]
        for generation in generations {
            for (event, endpoint) in generation.subscriptions { endpoints[event, default: []].append(endpoint) }
        }
        return NameIndex(endpoints.map(ModuleSubscribers.init), by: \.event)
    }
}

extension Table {
    /// The modules that subscribe to an event, in their order.
    func moduleSubscribers(of event: String) -> [Endpoint] {
        withExtendedLifetime(self) {
            event.withPluginString { subscribers(of: $0) }?._withUnsafeGuaranteedRef { subscribers in
                subscribers.endpoints.map { $0.takeUnretainedValue() }
            } ?? []
        }
    }

    /// Another generation of the same module.
    func successor(of generation: Generation) -> Generation? {
        generations.first { $0.name == generation.name && $0 !== generation }
    }
}
