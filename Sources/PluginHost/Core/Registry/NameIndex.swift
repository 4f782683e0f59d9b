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
        for element in elements { insert(element, name(element)) }
    }

    /// Makes an index that differs from another one in a few elements.
    ///
    /// - Parameters:
    ///   - gone: The elements of the other index that this one does not have.
    ///   - new: The elements that it has in addition.
    convenience init(
        _ before: NameIndex, without gone: [Element], adding new: [Element], by name: (Element) -> plugin_string
    ) {
        let left = Set(gone.lazy.map(ObjectIdentifier.init))
        let elements = before.elements.filter { left.isEmpty || !left.contains(ObjectIdentifier($0)) } + new
        let (used, room) = (elements.count, before.slots.count)
        guard used * 2 <= room, used * 8 >= room else {
            self.init(elements, by: name)
            return
        }
        self.init(copying: before, elements)
        for element in gone { remove(element, name(element)) }
        for element in new { insert(element, name(element)) }
    }

    private init(copying before: NameIndex, _ elements: [Element]) {
        self.elements = elements
        slots = .allocate(capacity: before.slots.count)
        _ = slots.initialize(from: before.slots)
    }

    deinit { slots.deallocate() }

    private func insert(_ element: Element, _ name: plugin_string) {
        let hash = NameTable.hash(name)
        var index = Int(truncatingIfNeeded: hash) & (slots.count - 1)
        while slots[index].element != nil { index = (index + 1) & (slots.count - 1) }
        slots[index] = Slot(hash: hash, name: name, element: .passUnretained(element))
    }

    /// Removes an element, and closes the gap in the sequence of slots that it leaves.
    private func remove(_ element: Element, _ name: plugin_string) {
        let mask = slots.count - 1
        var gap = Int(truncatingIfNeeded: NameTable.hash(name)) & mask
        while let other = slots[gap].element, other.takeUnretainedValue() !== element { gap = (gap + 1) & mask }
        guard slots[gap].element != nil else { return }
        var next = gap
        while true {
            next = (next + 1) & mask
            guard slots[next].element != nil else { break }
            // An element's search begins at its preferred slot, so the element may move to any slot from there on.
            let first = Int(truncatingIfNeeded: slots[next].hash) & mask
            guard (next - first) & mask >= (next - gap) & mask else { continue }
            slots[gap] = slots[next]
            gap = next
        }
        slots[gap] = Slot(hash: 0, name: plugin_string(), element: nil)
    }

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
