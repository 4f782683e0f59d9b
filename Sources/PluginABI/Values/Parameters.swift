/// The parameters of a call: named values, values by position, or both (those by position first).
///
///     try host.perform("A", "fetchDetail", ["key": "42", "page": 1])
///     try host.perform("A", "fetchDetail", ["42", 1])
///
/// Parameters are laid out for the boundary when they are made. For many calls with equal parameters, make them once.
/// Copying them copies a reference.
public struct Parameters: Sendable {
    @usableFromInline let encoded: EncodedValues

    /// Makes parameters from named values, in order. An empty name means "by position". If a name occurs more than
    /// once, the first one counts.
    @inlinable public init(_ entries: [(String, Value)]) {
        encoded = entries.isEmpty ? .none : entries.withUnsafeBufferPointer { EncodedValues($0) }
    }

    /// Makes parameters from named values.
    public init(_ entries: [String: Value]) {
        self.init(entries.map { ($0.key, $0.value) })
    }

    /// Makes parameters from values in the order in which the action declares its parameters.
    @inlinable public init(positional values: [Value]) {
        encoded = values.isEmpty ? .none : values.withUnsafeBufferPointer { EncodedValues(positional: $0) }
    }
}

extension Parameters: ExpressibleByDictionaryLiteral, ExpressibleByArrayLiteral {
    // Inlined, so that the array of the literal is freed where it was made.
    @inlinable public init(dictionaryLiteral elements: (String, Value)...) { self.init(elements) }
    @inlinable public init(arrayLiteral elements: Value...) { self.init(positional: elements) }
}

extension Parameters {
    /// Lends the entries to `body` in the form in which they cross the boundary.
    package func withEntries<Result>(
        _ body: (UnsafePointer<plugin_entry>, Int) throws(PluginError) -> Result
    ) throws(PluginError) -> Result {
        let count = encoded.entryCount
        if count == 0, let failure = encoded.failure { throw failure }
        defer { withExtendedLifetime(encoded) {} }
        return try body(encoded.entries, count)
    }
}
