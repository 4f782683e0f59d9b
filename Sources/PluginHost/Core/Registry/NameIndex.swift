import PluginABI

/// Elements by the bytes of their names: an immutable open-addressing table, like ``NameTable`` for actions.
final class NameIndex<Element: AnyObject & Sendable>: @unchecked Sendable {
    // The slots are written in init only, hence @unchecked Sendable.

    private let slots: UnsafeMutableBufferPointer<Slot>
    /// The elements; keeps them alive.
    private let elements: [Element]

    private struct Slot {
        var hash: UInt64
        var name: plugin_string
        /// `nil` if the slot is free.
        var element: Unmanaged<Element>?
    }

    /// - Parameters:
    ///   - elements: Elements with different names.
    ///   - name: Returns the name of an element, which lives as long as the element.
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

    /// Returns the element with this name, which need not be valid UTF-8.
    @inline(__always)
    func find(_ name: plugin_string) -> Unmanaged<Element>? { find(name, hash: NameTable.hash(name)) }

    /// Returns the element with this name, for callers that have already hashed the name.
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
