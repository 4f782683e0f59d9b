import CPluginABI
import PluginABI

/// Things by the bytes of their names: an open-addressing table, as ``NameTable`` is one of actions. Immutable.
final class NameIndex<Element: AnyObject & Sendable>: @unchecked Sendable {
    // The slots are written in init only, hence @unchecked Sendable.

    private let slots: UnsafeMutableBufferPointer<Slot>
    /// Keeps them alive.
    private let elements: [Element]

    private struct Slot {
        var hash: UInt64
        var name: plugin_string
        /// nil in a slot that is free.
        var element: Unmanaged<Element>?
    }

    /// - Parameters:
    ///   - elements: Of different names.
    ///   - name: Their names, which live as long as they do.
    init(_ elements: [Element], by name: (Element) -> plugin_string) {
        self.elements = elements
        var capacity = 8
        while capacity < elements.count * 2 { capacity *= 2 }
        slots = .allocate(capacity: capacity)
        slots.initialize(repeating: Slot(hash: 0, name: plugin_string(), element: nil))
        for element in elements {
            let name = name(element)
            let hash = NameTable.hash(name)
            var index = Int(truncatingIfNeeded: hash) & (capacity - 1)
            while slots[index].element != nil { index = (index + 1) & (capacity - 1) }
            slots[index] = Slot(hash: hash, name: name, element: .passUnretained(element))
        }
    }

    deinit { slots.deallocate() }

    /// What has a name. Never fails on any bytes.
    @inline(__always)
    func find(_ name: plugin_string) -> Unmanaged<Element>? { find(name, hash: NameTable.hash(name)) }

    /// The same, for who has hashed the name.
    @inline(__always)
    func find(_ name: plugin_string, hash: UInt64) -> Unmanaged<Element>? {
        var index = Int(truncatingIfNeeded: hash) & (slots.count - 1)
        while let element = slots[index].element {
            if slots[index].hash == hash, slots[index].name == name { return element }
            index = (index + 1) & (slots.count - 1)
        }
        return nil
    }
}
