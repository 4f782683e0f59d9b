/// A type that declares what its values are, because that cannot be derived: one with its own `init(from:)`.
///
///     struct Money: ValueCodable, ValueTyped {
///         static let valueType = ValueType.record(["amount": .double, "currency": .of(Currency.self)])
///         init(from decoder: any Decoder) throws { … }
///     }
///
/// The types of structs whose `Codable` is synthesized, and of enumerations that are `CaseIterable`, are derived.
public protocol ValueTyped {
    /// The type of the values. It is read when a tool such as `pluginhost facade` asks for the types of the module.
    static var valueType: ValueType { get }
}

/// The type of a value, which says more than its kind. See ``ValueTyped``.
public struct ValueType: Sendable {
    indirect enum Form: Sendable {
        case kind(Value.Kind)
        case list(ValueType)
        case map(ValueType)
        case optional(ValueType)
        case record([(String, ValueType)])
        case cases([Value])
        case type(any SendableMetatype.Type)
    }

    let form: Form

    private init(_ form: Form) { self.form = form }

    /// True or false.
    public static var bool: ValueType { ValueType(.kind(.bool)) }
    /// A 64-bit integer.
    public static var int: ValueType { ValueType(.kind(.int)) }
    /// A 64-bit floating point number.
    public static var double: ValueType { ValueType(.kind(.double)) }
    /// Text.
    public static var string: ValueType { ValueType(.kind(.string)) }
    /// Binary data.
    public static var bytes: ValueType { ValueType(.kind(.bytes)) }
    /// An object of any type.
    public static var object: ValueType { ValueType(.kind(.object)) }
    /// A map of anything.
    public static var map: ValueType { ValueType(.kind(.map)) }
    /// A value of any kind.
    public static var any: ValueType { ValueType(.kind(.any)) }
    /// A list whose elements are of one type.
    public static func list(_ element: ValueType) -> ValueType { ValueType(.list(element)) }
    /// A map whose values are of one type.
    public static func map(_ element: ValueType) -> ValueType { ValueType(.map(element)) }
    /// The type, or null. A field of this type can be missing.
    public static func optional(_ type: ValueType) -> ValueType { ValueType(.optional(type)) }
    /// A record: a map with these fields, in this order. It has the name of the Swift type that declares it.
    public static func record(_ fields: KeyValuePairs<String, ValueType>) -> ValueType {
        ValueType(.record(fields.map { ($0.key, $0.value) }))
    }
    /// An enumeration: one of these strings. It has the name of the Swift type that declares it.
    public static func cases(_ values: String...) -> ValueType { ValueType(.cases(values.map(Value.string))) }
    /// The type that is derived from, or declared by, a Swift type.
    public static func of<T: SendableMetatype>(_ type: T.Type) -> ValueType { ValueType(.type(type)) }
}
