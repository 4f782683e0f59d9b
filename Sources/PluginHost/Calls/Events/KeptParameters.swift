import CPluginHost
import PluginABI

/// The parameters of an event in the form for the program's handlers. A thread keeps them, without the values, if
/// parameters with the same names come twice in a row: for the next ones, setting the values takes a fraction of the time
/// in which a dictionary is made.
struct KeptParameters {
    private(set) var values: [String: Value]
    /// The parameters in the order in which they were posted, in memory of their own; empty if they are not kept.
    private let places: UnsafeMutableBufferPointer<Place>

    private struct Place {
        /// The name, in memory of its own.
        let name: plugin_string
        let index: Dictionary<String, Value>.Index
    }

    /// The largest number of parameters that are kept, and the largest number of bytes in their names.
    private static let (most, mostBytes) = (8, 256)

    /// - Parameter areKept: Whether they will be kept, if that is possible.
    @inline(never)
    fileprivate init(
        _ entries: UnsafeBufferPointer<plugin_entry>, areKept: Bool, host: UnsafePointer<plugin_host>?
    ) {
        let map = plugin_value_map(entries.baseAddress, UInt32(entries.count))
        values = Value(copying: map, host: host!).map ?? [:]
        places = areKept ? Self.places(of: entries, in: values) : .init(start: nil, count: 0)
    }

    private static func places(
        of entries: UnsafeBufferPointer<plugin_entry>, in values: [String: Value]
    ) -> UnsafeMutableBufferPointer<Place> {
        let none = UnsafeMutableBufferPointer<Place>(start: nil, count: 0)
        // If some have the same name, the dictionary is smaller.
        guard entries.count == values.count, 1...most ~= entries.count,
            entries.reduce(0, { $0 + $1.key.count }) <= mostBytes
        else { return none }
        let names = entries.map(\.key.text)
        // The poster may have changed the names since the dictionary was made.
        let indices = names.compactMap { values.index(forKey: $0) }
        guard Set(indices).count == names.count else { return none }
        let places = UnsafeMutableBufferPointer<Place>.allocate(capacity: names.count)
        for (number, name) in names.enumerated() {
            places.initializeElement(
                at: number, to: Place(name: plugin_string(allocating: name), index: indices[number]))
        }
        return places
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
    fileprivate func replace(in place: UnsafeMutablePointer<plugin_host_parameters>, memory: Memory?) {
        if let memory {
            deallocate(memory)
        } else if !places.isEmpty {
            if let other = place.pointee.kept?.assumingMemoryBound(to: Self.self) { other.move().deallocate(other) }
            let memory = Memory.allocate(capacity: 1)
            memory.initialize(to: self)
            place.pointee.kept = UnsafeMutableRawPointer(memory)
        }
    }

    private func deallocate(_ memory: Memory) {
        for place in places { place.name.deallocate() }
        places.deallocate()
        memory.deallocate()
    }

    fileprivate typealias Memory = UnsafeMutablePointer<Self>
}

extension UnsafeMutablePointer<plugin_host_parameters> {
    /// Notes that parameters were posted that are not the kept ones. Returns whether parameters with the same names were
    /// the last ones that were noted, and the kept ones have not been used since.
    @inline(never)
    fileprivate func noteOthers(_ entries: UnsafeBufferPointer<plugin_entry>) -> Bool {
        let names = entries.reduce(1) { ($0 &* 31) ^ NameTable.hash($1.key) }
        defer { pointee.others = names }
        return pointee.others == names
    }
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
        let place = plugin_host_parameters_of(pointer, number)!
        var memory: UnsafeMutablePointer<KeptParameters>?
        var parameters: KeptParameters
        if let kept = place.pointee.kept?.assumingMemoryBound(to: KeptParameters.self), kept.pointee.fit(entries) {
            // Events that handlers post while they run need parameters of their own.
            (place.pointee.kept, place.pointee.others) = (nil, 0)
            memory = kept
            parameters = kept.move()
            parameters.set(entries, host: host)
        } else {
            parameters = KeptParameters(entries, areKept: place.noteOthers(entries), host: host)
        }
        body(parameters.values)
        parameters.clear()
        guard let memory, place.pointee.kept == nil else { return parameters.replace(in: place, memory: memory) }
        memory.initialize(to: parameters)
        place.pointee.kept = UnsafeMutableRawPointer(memory)
    }
}
