/// The parameters of a call: named values, values by position, or both (those by position first).
///
///     try host.perform("A", "fetchDetail", ["key": key, "page": page + 1])
///     try host.perform("A", "fetchDetail", [key, 1])
///
/// A literal takes expressions of any type that is ``ValueConvertible``, optionals of such types, `nil` and ready-made
/// values (`.string(key)`), in any mixture. A list or map inside it whose elements are of several types is written as a
/// ``Value``: `["tags": ["red", 5] as Value]`.
///
/// Parameters are laid out for the boundary when they are made. For many calls with equal parameters, make them once.
/// Copying them copies a reference. A value that cannot cross the boundary, such as a `UInt` above `Int.max`, makes the
/// call fail with ``PluginError/Code/invalidValue``.
public struct Parameters: Sendable {
    // Here, `Value` alone would mean the associated type of ExpressibleByDictionaryLiteral.

    /// The values; `nil` if there are none.
    @usableFromInline let encoded: EncodedValues?

    /// Makes parameters from named values, in order. An empty name means "by position". If a name occurs more than
    /// once, the first one counts.
    @inlinable public init(_ entries: [(String, PluginABI.Value)]) {
        encoded = entries.isEmpty ? nil : entries.withUnsafeBufferPointer { EncodedValues($0) }
    }

    /// Makes parameters from named values.
    public init(_ entries: [String: PluginABI.Value]) {
        self.init(entries.map { ($0.key, $0.value) })
    }

    /// Makes parameters from values in the order in which the action declares its parameters.
    @inlinable public init(positional values: [PluginABI.Value]) {
        encoded = values.isEmpty ? nil : values.withUnsafeBufferPointer { EncodedValues(positional: $0) }
    }
}

extension Parameters: ExpressibleByDictionaryLiteral, ExpressibleByArrayLiteral {
    // Inlined, so that the array of the literal is freed where it was made.

    /// Makes parameters from a literal with names.
    @inlinable public init(dictionaryLiteral elements: (String, (any ValueConvertible)?)...) {
        encoded = elements.isEmpty ? nil : elements.withUnsafeBufferPointer { EncodedValues(literal: $0) }
    }

    /// Makes parameters from a literal in the order in which the action declares its parameters.
    @inlinable public init(arrayLiteral elements: (any ValueConvertible)?...) { self.init(literal: elements) }

    @inlinable init(literal elements: [(any ValueConvertible)?]) {
        encoded = elements.isEmpty ? nil : elements.withUnsafeBufferPointer { EncodedValues(literal: $0) }
    }
}

/// Ready-made values in a literal of ``Parameters``: `["key": .string(key), "page": .null]`.
extension Optional where Wrapped == any ValueConvertible {
    /// No value.
    @inlinable public static var null: Self { Value.null }
    /// True or false.
    @inlinable public static func bool(_ value: Bool) -> Self { value }
    /// A 64-bit integer.
    @inlinable public static func int(_ value: Int) -> Self { value }
    /// A 64-bit floating point number.
    @inlinable public static func double(_ value: Double) -> Self { value }
    /// Text.
    @inlinable public static func string(_ value: String) -> Self { value }
    /// Binary data.
    @inlinable public static func bytes(_ value: Bytes) -> Self { Value.bytes(value) }
    /// Values in order.
    @inlinable public static func list(_ value: [Value]) -> Self { Value.list(value) }
    /// Values by name.
    @inlinable public static func map(_ value: [String: Value]) -> Self { Value.map(value) }
    /// A reference to an object, or to a callback.
    @inlinable public static func object(_ value: Object) -> Self { Value.object(value) }
}

extension Parameters {
    /// The entries in the form in which they cross the boundary, valid as long as the parameters, or a copy of them.
    ///
    /// - Throws: The reason why the values cannot be passed.
    @inline(__always)
    package var entries: UnsafeBufferPointer<plugin_entry> {
        get throws(PluginError) {
            guard let encoded else { return UnsafeBufferPointer(start: nil, count: 0) }
            let count = encoded.entryCount
            if count == 0, let failure = encoded.failure { throw failure }
            return UnsafeBufferPointer(start: encoded.entries, count: count)
        }
    }

    /// Lends the entries to `body` in the form in which they cross the boundary.
    package func lend<Result>(
        _ body: (UnsafeBufferPointer<plugin_entry>) throws(PluginError) -> Result
    ) throws(PluginError) -> Result {
        defer { withExtendedLifetime(self) {} }
        return try body(try entries)
    }
}
