import CPluginHost
import PluginABI

/// The parameters of an event in the form for the program's handlers. A thread keeps them, without the values, for the
/// next event whose parameters have the same names: setting the values takes a fraction of the time in which a
/// dictionary is made.
struct KeptParameters {
    fileprivate private(set) var values: [String: Value]
    /// The parameters in the order in which they were posted, in memory of their own; empty if they cannot be kept.
    private let places: UnsafeMutableBufferPointer<Place>

    private struct Place {
        /// The name, in memory of its own.
        let name: plugin_string
        let index: Dictionary<String, Value>.Index
    }

    /// The largest number of parameters that are kept, and the largest number of bytes in their names.
    private static let (most, mostBytes) = (8, 256)

    @inline(never)
    fileprivate init(_ entries: UnsafeBufferPointer<plugin_entry>, host: UnsafePointer<plugin_host>?) {
        let map = plugin_value_map(entries.baseAddress, UInt32(entries.count))
        values = Value(copying: map, host: host!).map ?? [:]
        let count = entries.count
        guard count <= Self.most, count == values.count,  // Otherwise some have the same name.
            entries.reduce(0, { $0 + $1.key.count }) <= Self.mostBytes
        else {
            places = .init(start: nil, count: 0)
            return
        }
        places = .allocate(capacity: count)
        for (place, entry) in entries.enumerated() {
            let name = entry.key.text
            places.initializeElement(
                at: place, to: Place(name: plugin_string(allocating: name), index: values.index(forKey: name)!))
        }
    }

    /// Returns whether parameters have these names in this order.
    @inline(__always)
    fileprivate func fit(_ entries: UnsafeBufferPointer<plugin_entry>) -> Bool {
        guard entries.count == places.count else { return false }
        for index in entries.indices where !(places[index].name == entries[index].key) { return false }
        return true
    }

    @inline(__always)
    fileprivate mutating func set(_ entries: UnsafeBufferPointer<plugin_entry>, host: UnsafePointer<plugin_host>?) {
        for index in entries.indices {
            values.values[places[index].index] = Value(copying: entries[index].value, host: host!)
        }
    }

    /// Removes the values, so that what they refer to is freed. A handler that has copied the dictionary keeps them.
    @inline(__always)
    fileprivate mutating func clear() { for place in places { values.values[place.index] = .null } }

    /// Keeps parameters in a place that other ones may occupy.
    ///
    /// - Parameter memory: Their memory, if they were kept before. If so, they give way to the other ones.
    @inline(never)
    fileprivate func replace(in place: UnsafeMutablePointer<UnsafeMutableRawPointer?>, memory: Memory?) {
        if let memory {
            deallocate(memory)
        } else if !places.isEmpty {
            if let other = place.pointee?.assumingMemoryBound(to: Self.self) { other.move().deallocate(other) }
            let memory = Memory.allocate(capacity: 1)
            memory.initialize(to: self)
            place.pointee = UnsafeMutableRawPointer(memory)
        }
    }

    private func deallocate(_ memory: Memory) {
        for place in places { place.name.deallocate() }
        places.deallocate()
        memory.deallocate()
    }

    fileprivate typealias Memory = UnsafeMutablePointer<Self>
}

extension ThreadContext {
    /// Calls `body` with the parameters of an event, which need not be valid afterwards.
    ///
    /// - Parameter number: The number of the event's endpoint. Parameters of events with other numbers may be kept in
    ///   the same place.
    @inline(__always)
    func withParameters(
        _ entries: UnsafeBufferPointer<plugin_entry>, keptAs number: UInt32, host: UnsafePointer<plugin_host>?,
        _ body: ([String: Value]) -> Void
    ) {
        let place = plugin_host_parameters(pointer, number)!
        var memory: UnsafeMutablePointer<KeptParameters>?
        var parameters: KeptParameters
        if let kept = place.pointee?.assumingMemoryBound(to: KeptParameters.self), kept.pointee.fit(entries) {
            // Events that handlers post while they run need parameters of their own.
            place.pointee = nil
            memory = kept
            parameters = kept.move()
            parameters.set(entries, host: host)
        } else {
            parameters = KeptParameters(entries, host: host)
        }
        body(parameters.values)
        parameters.clear()
        guard let memory, place.pointee == nil else { return parameters.replace(in: place, memory: memory) }
        memory.initialize(to: parameters)
        place.pointee = UnsafeMutableRawPointer(memory)
    }
}
