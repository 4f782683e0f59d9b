/// Values by name, as a literal: for functions whose parameters all have names, such as those that build a URL.
///
///     try host.url(for: "detail", ["key": key, "page": page + 1])
///
/// A literal takes what a literal of ``Parameters`` takes: expressions of any type that is ``ValueConvertible``,
/// optionals of such types, `nil`, and ready-made values. If a name occurs more than once, the first one counts. A
/// value that cannot be converted, such as a `UInt` above `Int.max`, makes the function that gets it fail with
/// ``PluginError/Code/invalidValue``.
public struct NamedValues: Sendable, ExpressibleByDictionaryLiteral {
    // Here, `Value` alone would mean the associated type of ExpressibleByDictionaryLiteral.

    private let outcome: Result<[String: PluginABI.Value], PluginError>

    /// Uses a map.
    public init(_ values: [String: PluginABI.Value]) { outcome = .success(values) }

    /// Makes named values from a literal.
    public init(dictionaryLiteral elements: (String, (any ValueConvertible)?)...) {
        outcome = Result { () throws(PluginError) in
            var values: [String: PluginABI.Value] = [:]
            for (name, value) in elements where values[name] == nil {
                values[name] = try EncodedValues.convert(value, name, position: 0)
            }
            return values
        }
    }

    /// Returns the values.
    ///
    /// - Throws: The error of the first value that cannot be converted.
    package func get() throws(PluginError) -> [String: PluginABI.Value] { try outcome.get() }
}
