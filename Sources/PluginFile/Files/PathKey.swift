import Glibc

/// A path or file name as a key that is compared by its bytes. Swift strings are equal if they are canonically
/// equivalent: `é` has two encodings, which name two different files on Linux.
@usableFromInline
package struct PathKey: Hashable, Comparable, Sendable {
    @usableFromInline package let path: String

    @inlinable package init(_ path: String) { self.path = path }

    @usableFromInline
    package static func == (left: PathKey, right: PathKey) -> Bool { left.path.hasBytes(of: right.path) }

    /// Compares two paths by their bytes, as `sort` does in the C locale.
    @usableFromInline
    package static func < (left: PathKey, right: PathKey) -> Bool {
        left.path.sortsByBytes(before: right.path)
    }

    @usableFromInline
    package func hash(into hasher: inout Hasher) {
        hasher.combine(path.withBytes { Self.digest(UnsafeRawBufferPointer($0)) })
    }

    /// Called by sets and dictionaries instead of ``hash(into:)``, each with a seed of its own. The digest is already
    /// that of a keyed hash function.
    @usableFromInline
    package func _rawHashValue(seed: Int) -> Int {
        let digest = path.withBytes { Self.digest(UnsafeRawBufferPointer($0)) }
        let product = (digest ^ UInt64(bitPattern: Int64(seed))).multipliedFullWidth(by: 0x9E37_79B9_7F4A_7C15)
        return Int(truncatingIfNeeded: product.high ^ product.low)
    }

    /// Differs between processes, so that nobody can choose paths with equal digests.
    private static let seed = UInt64(truncatingIfNeeded: Hasher().finalize())

    /// Returns a digest of a path, which is found faster than a `Hasher` would take for all its bytes.
    private static func digest(_ bytes: UnsafeRawBufferPointer) -> UInt64 {
        let multiplier = seed ^ 0x9E37_79B9_7F4A_7C15 | 1
        var digest = seed ^ UInt64(bytes.count)
        func mix(_ word: UInt64) {
            let product = (digest ^ word).multipliedFullWidth(by: multiplier)
            digest = product.high ^ product.low &+ word
        }
        var rest = bytes
        while rest.count >= 8 {
            mix(rest.loadUnaligned(as: UInt64.self))
            rest = UnsafeRawBufferPointer(rebasing: rest[8...])
        }
        var last: UInt64 = 0
        for byte in rest { last = last << 8 | UInt64(byte) }
        mix(last)
        return digest
    }
}

extension String {
    /// Compares two strings by their bytes, as ``PathKey`` does.
    @usableFromInline
    package func sortsByBytes(before other: String) -> Bool {
        withBytes { left in
            other.withBytes { right in
                let count = min(left.count, right.count)
                let order = count == 0 ? 0 : memcmp(left.baseAddress!, right.baseAddress!, count)
                return order == 0 ? left.count < right.count : order < 0
            }
        }
    }

    /// Returns whether both strings have the same bytes.
    package func hasBytes(of other: String) -> Bool {
        withBytes { left in
            other.withBytes { right in
                left.count == right.count
                    && (left.isEmpty || memcmp(left.baseAddress!, right.baseAddress!, left.count) == 0)
            }
        }
    }

    /// Calls a function with the bytes of the string, without copying the string if possible.
    fileprivate func withBytes<Result>(_ body: (UnsafeBufferPointer<UInt8>) -> Result) -> Result {
        if let result = utf8.withContiguousStorageIfAvailable(body) { return result }
        var copy = self
        return copy.withUTF8(body)
    }

    /// Returns whether the string begins with the bytes of `start`.
    package func beginsWithBytes(of start: String) -> Bool { utf8.starts(with: start.utf8) }
}

extension Array {
    /// Returns the elements in the order of the bytes of a text of each, without moving elements while they are
    /// compared: large ones would take most of the time.
    @inlinable package func sorted(byBytesOf text: (Element) -> String) -> [Element] {
        if indices.dropFirst().allSatisfy({ !text(self[$0]).sortsByBytes(before: text(self[$0 - 1])) }) { return self }
        var texts = TextList(capacity: count, bytes: reduce(0) { $0 + text($1).utf8.count })
        for element in self { texts.append(text(element)) }
        return texts.order.map { self[$0] }
    }
}

/// A list of texts to be sorted.
@usableFromInline
struct TextList {
    private var bytes: [UInt8] = []
    /// The ends of the texts in ``bytes``, after a zero.
    private var ends = [0]

    /// - Parameters:
    ///   - capacity: The number of texts.
    ///   - bytes: The sum of their lengths.
    @usableFromInline init(capacity: Int, bytes count: Int) {
        ends.reserveCapacity(capacity + 1)
        bytes.reserveCapacity(count)
    }

    @usableFromInline
    mutating func append(_ text: String) {
        // Appending the UTF-8 view would create its generic iterator, for which the runtime searches all libraries.
        text.withBytes { bytes.append(contentsOf: $0) }
        ends.append(bytes.count)
    }

    /// The numbers of the texts in the order of their bytes.
    @usableFromInline var order: [Int] {
        bytes.withUnsafeBytes { bytes in
            ends.withUnsafeBufferPointer { ends in
                func precedes(_ left: Int, _ right: Int) -> Bool {
                    let counts = (ends[left + 1] - ends[left], ends[right + 1] - ends[right])
                    let count = min(counts.0, counts.1)
                    guard count > 0, let start = bytes.baseAddress else { return counts.0 < counts.1 }
                    let order = memcmp(start + ends[left], start + ends[right], count)
                    return order == 0 ? counts.0 < counts.1 : order < 0
                }
                return (0..<ends.count - 1).sorted(by: precedes)
            }
        }
    }
}

extension Dictionary where Key == PathKey {
    @inlinable package subscript(path: String) -> Value? {
        get { self[PathKey(path)] }
        set { self[PathKey(path)] = newValue }
        _modify { yield &self[PathKey(path)] }
    }
}

extension Set where Element == PathKey {
    @inlinable package init(paths: some Sequence<String>) { self = Set(paths.lazy.map(PathKey.init)) }

    package func contains(_ path: String) -> Bool { contains(PathKey(path)) }

    /// Inserts a path, and returns whether it is new.
    @discardableResult
    package mutating func insert(_ path: String) -> Bool { insert(PathKey(path)).inserted }
}
