import PluginFile

/// A dictionary in buckets. Changing a copy copies one bucket and the list of buckets, so the change of an entry takes
/// hardly longer if there are many.
struct BucketMap<Key: Hashable & Sendable, Value: Sendable>: Sequence, Sendable {
    private static var bucketCount: Int { 64 }

    /// Empty, or ``bucketCount`` buckets.
    private var buckets: [[Key: Value]] = []
    private(set) var count = 0

    init() {}

    /// - Parameter entries: The entries. Of those with the same key, the first one is taken.
    init(_ entries: some Sequence<(Key, Value)>) {
        for (key, value) in entries where self[key] == nil { self[key] = value }
    }

    private static func index(of key: Key) -> Int { key.hashValue & (bucketCount - 1) }

    var isEmpty: Bool { count == 0 }

    subscript(key: Key) -> Value? {
        get { isEmpty ? nil : buckets[Self.index(of: key)][key] }
        _modify {
            if buckets.isEmpty { buckets = Array(repeating: [:], count: Self.bucketCount) }
            let index = Self.index(of: key)
            let before = buckets[index].count
            defer { count += buckets[index].count - before }
            yield &buckets[index][key]
        }
    }

    /// Prepares for this many entries in addition to the present ones.
    mutating func reserveCapacity(adding more: Int) {
        guard more > Self.bucketCount else { return }
        if buckets.isEmpty { buckets = Array(repeating: [:], count: Self.bucketCount) }
        // Buckets are not filled evenly.
        let room = (count + more) / Self.bucketCount * 3 / 2
        for index in buckets.indices { buckets[index].reserveCapacity(room) }
    }

    /// Removes an entry.
    ///
    /// - Returns: Its value; `nil` if there is none.
    mutating func removeValue(forKey key: Key) -> Value? {
        guard let value = self[key] else { return nil }
        self[key] = nil
        return value
    }

    func makeIterator() -> FlattenSequence<[[Key: Value]]>.Iterator { buckets.joined().makeIterator() }

    var keys: some Sequence<Key> { buckets.lazy.flatMap { $0.keys } }
    var values: some Sequence<Value> { buckets.lazy.flatMap { $0.values } }
}

extension BucketMap where Key == PathKey {
    subscript(path: String) -> Value? {
        get { self[PathKey(path)] }
        _modify { yield &self[PathKey(path)] }
    }
}
