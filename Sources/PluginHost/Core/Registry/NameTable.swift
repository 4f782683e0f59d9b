import PluginABI

/// An immutable open-addressing table from target and action to the endpoint.
final class NameTable: @unchecked Sendable {
    // The slots are written in init only, hence @unchecked Sendable.

    /// The actions by target, for errors and lists.
    let targets: [String: TargetEntry]
    private let slots: UnsafeMutableBufferPointer<Slot>
    /// The number of addresses.
    private let count: Int

    struct TargetEntry {
        let generation: Generation
        let actions: [String: Endpoint]
    }

    private struct Slot {
        var hash: UInt64 = 0
        /// `nil` if the slot is free.
        var endpoint: Unmanaged<Endpoint>?
        /// `target/action`.
        var name: UnsafePointer<CChar>?
        var targetCount: UInt32 = 0
        var actionCount: UInt32 = 0

        @inline(__always)
        var target: plugin_string { plugin_string(bytes: name, count: UInt64(targetCount)) }
        @inline(__always)
        var action: plugin_string {
            plugin_string(bytes: name.unsafelyUnwrapped + Int(targetCount) + 1, count: UInt64(actionCount))
        }
    }

    /// - Parameter generations: The generations whose actions it contains. They outlive the table.
    init(_ generations: [Generation]) {
        var targets: [String: TargetEntry] = [:]
        for generation in generations {
            for (name, actions) in generation.targets {
                targets[name] = TargetEntry(generation: generation, actions: actions)
            }
        }
        self.targets = targets
        count = generations.reduce(0) { $0 + $1.addresses.count }
        var capacity = 8
        while capacity < count * 2 { capacity *= 2 }
        slots = .allocate(capacity: capacity)
        slots.initialize(repeating: Slot())
        for generation in generations {
            for address in generation.addresses { insert(address) }
        }
    }

    /// Makes a table that differs from another one in a few generations. Takes less time than building the same table
    /// from scratch. This is the usual case: one module among many is added, replaced or removed.
    ///
    /// - Parameters:
    ///   - before: The other table, which has no more than half and no less than an eighth of its slots in use with
    ///     this change.
    ///   - change: The generations that leave it, and those that are added. They outlive the table.
    private init(_ before: NameTable, _ change: ModuleChange) {
        var targets = before.targets
        for generation in change.gone {
            for name in generation.targets.keys where targets[name]?.generation === generation { targets[name] = nil }
        }
        for generation in change.new {
            for (name, actions) in generation.targets {
                targets[name] = TargetEntry(generation: generation, actions: actions)
            }
        }
        self.targets = targets
        count = before.count + change.addressCount
        slots = .allocate(capacity: before.slots.count)
        _ = slots.initialize(from: before.slots)
        for address in change.gone.lazy.flatMap(\.addresses) { remove(address) }
        for address in change.new.lazy.flatMap(\.addresses) { insert(address) }
    }

    /// Returns the table of these generations.
    ///
    /// - Parameter change: The difference from the generations of this table.
    func changed(to generations: [Generation], _ change: ModuleChange) -> NameTable {
        let count = count + change.addressCount
        let isAlike = change.isSmall(among: generations) && count * 2 <= slots.count && count * 8 >= slots.count
        return isAlike ? NameTable(self, change) : NameTable(generations)
    }

    deinit { slots.deallocate() }

    /// Removes an address that is in the table, and closes the gap in the sequence of slots that it leaves.
    private func remove(_ address: Generation.Address) {
        let mask = slots.count - 1
        var gap = Int(truncatingIfNeeded: Self.hash(address.target, address.action)) & mask
        let endpoint = Unmanaged.passUnretained(address.endpoint).toOpaque()
        while let other = slots[gap].endpoint, other.toOpaque() != endpoint { gap = (gap + 1) & mask }
        guard slots[gap].endpoint != nil else { return }
        var next = gap
        while true {
            next = (next + 1) & mask
            guard slots[next].endpoint != nil else { break }
            // An element's search begins at its preferred slot, so the element may move to any slot from there on.
            let first = Int(truncatingIfNeeded: slots[next].hash) & mask
            guard (next - first) & mask >= (next - gap) & mask else { continue }
            slots[gap] = slots[next]
            gap = next
        }
        slots[gap] = Slot()
    }

    private func insert(_ address: Generation.Address) {
        let hash = Self.hash(address.target, address.action)
        var index = Int(truncatingIfNeeded: hash) & (slots.count - 1)
        while slots[index].endpoint != nil { index = (index + 1) & (slots.count - 1) }
        slots[index] = Slot(
            hash: hash, endpoint: .passUnretained(address.endpoint), name: address.target.bytes,
            targetCount: UInt32(address.target.count), actionCount: UInt32(address.action.count))
    }

    /// Returns the endpoint of an action, if there is one. The names need not be valid UTF-8.
    @inline(__always)
    func find(_ target: plugin_string, _ action: plugin_string) -> Unmanaged<Endpoint>? {
        let hash = Self.hash(target, action)
        let (slots, mask) = (slots.baseAddress.unsafelyUnwrapped, slots.count &- 1)
        var index = Int(truncatingIfNeeded: hash) & mask
        while let endpoint = slots[index].endpoint {
            let slot = slots + index
            if slot.pointee.hash == hash, slot.pointee.target == target, slot.pointee.action == action {
                return endpoint
            }
            index = (index &+ 1) & mask
        }
        return nil
    }

    /// Hashes eight bytes at a time, multiplied and folded. Names are checked when they are registered, so an attacker
    /// cannot choose them to collide.
    @inline(__always)
    static func hash(_ target: plugin_string, _ action: plugin_string) -> UInt64 {
        var hash: UInt64 = 0x9E37_79B9_7F4A_7C15
        mix(target, into: &hash)
        hash = hash &* 0xFF51_AFD7_ED55_8CCD
        mix(action, into: &hash)
        return hash ^ hash >> 32
    }

    /// Returns the hash of a single name, as used by ``NameIndex``.
    @inline(__always)
    static func hash(_ name: plugin_string) -> UInt64 { hash(name, plugin_string()) }

    @inline(__always)
    private static func mix(_ string: plugin_string, into hash: inout UInt64) {
        guard let start = UnsafeRawPointer(string.bytes) else { return }
        let count = Int(truncatingIfNeeded: string.count)
        var offset = 0
        while offset &+ 8 <= count {
            hash = (hash ^ start.word(at: offset)) &* 0x9FB2_1C65_1E98_DF25
            hash ^= hash >> 29
            offset &+= 8
        }
        hash = (hash ^ start.tail(from: offset, to: count)) &* 0x9FB2_1C65_1E98_DF25
        hash = (hash ^ UInt64(truncatingIfNeeded: count)) &* 0xC2B2_AE3D_27D4_EB4F
        hash ^= hash >> 29
    }
}

extension plugin_string {
    /// Returns whether both have the same bytes.
    @inline(__always)
    static func == (left: plugin_string, right: plugin_string) -> Bool {
        guard left.count == right.count else { return false }
        guard let first = UnsafeRawPointer(left.bytes), let second = UnsafeRawPointer(right.bytes) else {
            return left.count == 0
        }
        // Names are short: this is faster than a call of memcmp.
        let count = Int(truncatingIfNeeded: left.count)
        var offset = 0
        while offset &+ 8 <= count {
            guard first.word(at: offset) == second.word(at: offset) else { return false }
            offset &+= 8
        }
        return first.tail(from: offset, to: count) == second.tail(from: offset, to: count)
    }
}

extension UnsafeRawPointer {
    @inline(__always)
    func word(at offset: Int) -> UInt64 { loadUnaligned(fromByteOffset: offset, as: UInt64.self) }

    /// Returns up to seven bytes as a number; different sequences of the same length give different numbers. Reads no
    /// bytes beyond them.
    @inline(__always)
    func tail(from offset: Int, to end: Int) -> UInt64 {
        let rest = end &- offset
        if rest >= 4 {
            // The two reads may overlap.
            let low = loadUnaligned(fromByteOffset: offset, as: UInt32.self)
            let high = loadUnaligned(fromByteOffset: end &- 4, as: UInt32.self)
            return UInt64(low) | UInt64(high) &<< 32
        }
        if rest <= 0 { return 0 }
        let first = UInt64(load(fromByteOffset: offset, as: UInt8.self))
        let middle = UInt64(load(fromByteOffset: offset &+ rest &>> 1, as: UInt8.self))
        let last = UInt64(load(fromByteOffset: end &- 1, as: UInt8.self))
        return first | middle &<< 8 | last &<< 16
    }
}
