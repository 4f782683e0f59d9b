/// A value that can cross the boundary between modules. Parameters and results are made of values.
///
/// This is the Swift form of `plugin_value`. Write values as literals (`["key": "42", "page": 1]`); read them with
/// ``get(_:)`` or the typed properties, which are `nil` for a value of another kind.
public enum Value: Sendable, Hashable {
    /// No value.
    case null
    /// True or false.
    case bool(Bool)
    /// A 64-bit integer.
    case int(Int)
    /// A 64-bit floating point number.
    case double(Double)
    /// Text, at most 4 GiB of UTF-8.
    case string(String)
    /// Binary data, at most 4 GiB. It is not copied when it is passed as a parameter.
    case bytes(Bytes)
    /// Values in order. Lists and maps nest at most 128 levels deep.
    case list([Value])
    /// Values by name, unordered.
    case map([String: Value])
    /// A reference to an object that lives in a module, or to a callback.
    case object(Object)

    /// The declared type of a parameter or result. Its raw value is the word in the manifest.
    public enum Kind: String, Sendable, Codable, CaseIterable {
        /// True or false.
        case bool
        /// A 64-bit integer; `3.0` is accepted as 3, but `3.5` is not.
        case int
        /// A 64-bit floating point number; an int is accepted if nothing is lost.
        case double
        /// Text.
        case string
        /// Binary data.
        case bytes
        /// Values in order.
        case list
        /// Values by name.
        case map
        /// An object or a callback.
        case object
        /// Every kind, null included.
        case any
        /// No value; for results only.
        case null
    }

    /// The kind of this value; never ``Kind/any``.
    public var kind: Kind {
        switch self {
        case .null: .null
        case .bool: .bool
        case .int: .int
        case .double: .double
        case .string: .string
        case .bytes: .bytes
        case .list: .list
        case .map: .map
        case .object: .object
        }
    }

    /// Whether this is null.
    public var isNull: Bool { if case .null = self { true } else { false } }
    /// The truth value; `nil` for another kind.
    public var bool: Bool? { if case .bool(let value) = self { value } else { nil } }
    /// The integer; `nil` for another kind, including doubles.
    public var int: Int? { if case .int(let value) = self { value } else { nil } }
    /// The number, of a double or an int; `nil` for another kind, and for an int that no double represents exactly.
    public var double: Double? {
        switch self {
        case .double(let value): value
        case .int(let value): Double(exactly: value)
        default: nil
        }
    }
    /// The text; `nil` for another kind.
    public var string: String? { if case .string(let value) = self { value } else { nil } }
    /// The binary data; `nil` for another kind.
    public var bytes: Bytes? { if case .bytes(let value) = self { value } else { nil } }
    /// The elements; `nil` for another kind.
    public var list: [Value]? { if case .list(let value) = self { value } else { nil } }
    /// The entries; `nil` for another kind.
    public var map: [String: Value]? { if case .map(let value) = self { value } else { nil } }
    /// The object; `nil` for another kind.
    public var object: Object? { if case .object(let value) = self { value } else { nil } }

    /// The entry of a map; `nil` if this is not a map or has no such entry.
    public subscript(key: String) -> Value? { map?[key] }
    /// The element of a list; `nil` if this is not a list or has no such element.
    public subscript(index: Int) -> Value? {
        guard case .list(let values) = self, values.indices.contains(index) else { return nil }
        return values[index]
    }
}

extension Value: ExpressibleByNilLiteral, ExpressibleByBooleanLiteral, ExpressibleByIntegerLiteral,
    ExpressibleByFloatLiteral, ExpressibleByStringInterpolation, ExpressibleByArrayLiteral,
    ExpressibleByDictionaryLiteral
{
    public init(nilLiteral: ()) { self = .null }
    public init(booleanLiteral value: Bool) { self = .bool(value) }
    public init(integerLiteral value: Int) { self = .int(value) }
    public init(floatLiteral value: Double) { self = .double(value) }
    public init(stringLiteral value: String) { self = .string(value) }
    public init(arrayLiteral elements: Value...) { self = .list(elements) }
    /// Makes a map. If a key occurs more than once, the last entry counts.
    public init(dictionaryLiteral elements: (String, Value)...) {
        self = .map(Dictionary(elements, uniquingKeysWith: { $1 }))
    }
}

extension Value: CustomStringConvertible {
    /// The value as JSON, for people; see ``json``.
    public var description: String { json }
}
