/// A value as it can be written in a literal of parameters, whether or not it can be passed. Exists only for the
/// sake of clear compiler errors.
public protocol LiteralPart {}

extension Array: LiteralPart {}
extension Dictionary: LiteralPart {}

/// The type of a literal of parameters that has a nested list or map whose elements are of several types. Functions
/// that take it are unavailable, and say what to write.
public struct MixedParameters: ExpressibleByDictionaryLiteral, ExpressibleByArrayLiteral {
    /// Not called, because no available function takes the type.
    public init(dictionaryLiteral elements: (String, (any LiteralPart)?)...) {}
    /// Not called, because no available function takes the type.
    public init(arrayLiteral elements: (any LiteralPart)?...) {}
}

/// The type of a literal of named values with such a nested list or map.
public struct MixedNamedValues: ExpressibleByDictionaryLiteral {
    /// Not called, because no available function takes the type.
    public init(dictionaryLiteral elements: (String, (any LiteralPart)?)...) {}
}

/// Makes values for a literal that also contains a nested list or map.
extension Optional where Wrapped == any LiteralPart {
    /// No value.
    public static var null: Self { Value.null }
    /// True or false.
    public static func bool(_ value: Bool) -> Self { value }
    /// A 64-bit integer.
    public static func int(_ value: Int) -> Self { value }
    /// A 64-bit floating point number.
    public static func double(_ value: Double) -> Self { value }
    /// Text.
    public static func string(_ value: String) -> Self { value }
    /// Binary data.
    public static func bytes(_ value: Bytes) -> Self { value }
    /// Values in order.
    public static func list(_ value: [Value]) -> Self { value }
    /// Values by name.
    public static func map(_ value: [String: Value]) -> Self { value }
    /// A reference to an object, or to a callback.
    public static func object(_ value: Object) -> Self { value }
}
