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
        var path = path
        path.withUTF8 { hasher.combine(bytes: UnsafeRawBufferPointer($0)) }
        hasher.combine(0xFF as UInt8)
    }
}

extension String {
    /// Compares two strings by their bytes, as ``PathKey`` does.
    package func sortsByBytes(before other: String) -> Bool {
        var (left, right) = (self, other)
        return left.withUTF8 { left in
            right.withUTF8 { right in
                let count = min(left.count, right.count)
                let order = count == 0 ? 0 : memcmp(left.baseAddress!, right.baseAddress!, count)
                return order == 0 ? left.count < right.count : order < 0
            }
        }
    }

    /// Returns whether both strings have the same bytes.
    package func hasBytes(of other: String) -> Bool {
        var (left, right) = (self, other)
        return left.withUTF8 { left in
            right.withUTF8 { right in
                left.count == right.count
                    && (left.isEmpty || memcmp(left.baseAddress!, right.baseAddress!, left.count) == 0)
            }
        }
    }

    /// Returns whether the string begins with the bytes of `start`.
    package func beginsWithBytes(of start: String) -> Bool { utf8.starts(with: start.utf8) }
}

extension Array {
    /// Returns the elements in the order of the bytes of a text of each, without moving elements while they are
    /// compared: large ones would take most of the time.
    package func sorted(byBytesOf text: (Element) -> String) -> [Element] {
        let texts = map(text)
        if zip(texts, texts.dropFirst()).allSatisfy({ !$1.sortsByBytes(before: $0) }) { return self }
        return indices.sorted { texts[$0].sortsByBytes(before: texts[$1]) }.map { self[$0] }
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
