/// The parameters of a call: named values, or values by position, or both (positions first).
///
///     try host.perform("A", "fetchDetail", ["key": "42", "page": 1])
///     try host.perform("A", "fetchDetail", ["42", 1])
///
/// They are laid out for the border when they are made: make them once to call many times. Copying one copies a
/// reference.
public struct Parameters: Sendable {
    @usableFromInline let encoded: EncodedValues

    /// Named values, in order; a name that is empty means "by position". Of equal names the first one counts.
    @inlinable public init(_ entries: [(String, Value)]) {
        encoded = entries.isEmpty ? .none : entries.withUnsafeBufferPointer { EncodedValues($0) }
    }

    /// Named values.
    public init(_ entries: [String: Value]) {
        self.init(entries.map { ($0.key, $0.value) })
    }

    /// Values in the order in which the action declares its parameters.
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
    /// Lends the entries as they cross the border.
    package func withEntries<Result>(
        _ body: (UnsafePointer<plugin_entry>, Int) throws(PluginError) -> Result
    ) throws(PluginError) -> Result {
        let count = encoded.entryCount
        if count == 0, let failure = encoded.failure { throw failure }
        defer { withExtendedLifetime(encoded) {} }
        return try body(encoded.entries, count)
    }
}
