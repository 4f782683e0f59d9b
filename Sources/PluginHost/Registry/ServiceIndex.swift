import CPluginABI
import PluginABI

/// Services by the bytes of their names: an open-addressing table, as ``NameTable`` is one of actions. Immutable.
final class ServiceIndex: @unchecked Sendable {
    // The slots are written in init only, hence @unchecked Sendable.

    private let slots: UnsafeMutableBufferPointer<Slot>

    private struct Slot {
        var hash: UInt64
        var name: plugin_string
        /// nil in a slot that is free.
        var service: Unmanaged<ServiceEntry>?
    }

    /// - Parameter services: Of different names; they are never freed.
    init(_ services: [ServiceEntry]) {
        var capacity = 8
        while capacity < services.count * 2 { capacity *= 2 }
        slots = .allocate(capacity: capacity)
        slots.initialize(repeating: Slot(hash: 0, name: plugin_string(), service: nil))
        for service in services {
            let hash = NameTable.hash(service.nameBytes, plugin_string())
            var index = Int(truncatingIfNeeded: hash) & (capacity - 1)
            while slots[index].service != nil { index = (index + 1) & (capacity - 1) }
            slots[index] = Slot(hash: hash, name: service.nameBytes, service: .passUnretained(service))
        }
    }

    deinit { slots.deallocate() }

    /// The service of a name. Never fails on any bytes.
    @inline(__always)
    func find(_ name: plugin_string) -> Unmanaged<ServiceEntry>? {
        let hash = NameTable.hash(name, plugin_string())
        var index = Int(truncatingIfNeeded: hash) & (slots.count - 1)
        while let service = slots[index].service {
            if slots[index].hash == hash, slots[index].name == name { return service }
            index = (index + 1) & (slots.count - 1)
        }
        return nil
    }
}

extension Table {
    /// The best service of a name, if it has at least a version.
    @inline(__always)
    func service(_ name: plugin_string, from smallest: SemanticVersion?) -> ServiceEntry? {
        guard let best = serviceIndex.find(name)?.takeUnretainedValue() else { return nil }
        guard let smallest else { return best }
        return best.version >= smallest ? best : nil
    }
}
