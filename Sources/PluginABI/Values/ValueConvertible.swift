/// A type that an action can declare for a parameter. Conform your own types to ``ValueConvertible`` or
/// ``ValueCodable`` instead; conform to this protocol alone only if a type borrows its argument.
public protocol ActionParameter: SendableMetatype {
    /// The declared type, for the manifest. The host converts arguments to it.
    static var kind: Value.Kind { get }
    /// Reads an argument, which is valid until the action returns.
    init(borrowing raw: plugin_value, host: UnsafePointer<plugin_host>) throws(PluginError)
}

extension ActionParameter {
    /// Reads an argument like the initialiser, but reads scalars and text without a conversion. (Where this is inlined,
    /// the compiler knows the type and removes the other branches; it does not inline the initialiser of a protocol.)
    @inlinable @inline(__always)
    static func read(_ raw: plugin_value, host: UnsafePointer<plugin_host>) throws(PluginError) -> Self {
        if Self.self == Int.self, raw.kind == PLUGIN_KIND_INT {
            return unsafeBitCast(Int(raw.as.integer), to: Self.self)
        }
        if Self.self == Double.self, raw.kind == PLUGIN_KIND_DOUBLE { return unsafeBitCast(raw.as.real, to: Self.self) }
        if Self.self == Bool.self, raw.kind == PLUGIN_KIND_BOOL {
            return unsafeBitCast(raw.as.boolean != 0, to: Self.self)
        }
        if Self.self == String.self, raw.kind == PLUGIN_KIND_STRING {
            return unsafeBitCast(String(copying: raw.as.string, count: Int(raw.count)), to: Self.self)
        }
        return try Self(borrowing: raw, host: host)
    }
}

/// A type that an action can return.
public protocol ActionResult: SendableMetatype {
    /// The declared type of the result, for the manifest.
    static var resultKind: Value.Kind { get }
    /// Lends the value to `body` in the form in which it crosses the boundary.
    func lend(to body: (plugin_value) -> Void) throws(PluginError)
}

/// A type whose values can be parameters and results: convertible to ``Value`` and back.
///
/// Lists and maps conform if their elements are of one such type. A list or map of several types is written as a
/// ``Value``: `["red", 5] as Value`.
public protocol ValueConvertible: ActionParameter, ActionResult, LiteralPart {
    /// Reads a value; throws ``PluginError/Code/mistypedParameter`` if the value is not of this type.
    init(_ value: Value) throws(PluginError)
    /// The value in the form in which it crosses the boundary; throws an error if it cannot be expressed.
    var value: Value { get throws(PluginError) }
}

extension ValueConvertible {
    @inlinable public static var resultKind: Value.Kind { kind }

    @inlinable public init(borrowing raw: plugin_value, host: UnsafePointer<plugin_host>) throws(PluginError) {
        try self.init(Value(copying: raw, host: host))
    }

    @inlinable public func lend(to body: (plugin_value) -> Void) throws(PluginError) { try value.lend(to: body) }
}

// MARK: Scalars, read and lent without a Value in between

extension Bool: ValueConvertible {
    @inlinable public static var kind: Value.Kind { .bool }
    @inlinable public var value: Value { .bool(self) }
    public init(_ value: Value) throws(PluginError) {
        guard let bool = value.bool else { throw .mistyped(value, expected: "a bool") }
        self = bool
    }
    @inlinable public init(borrowing raw: plugin_value, host: UnsafePointer<plugin_host>) throws(PluginError) {
        guard raw.kind == PLUGIN_KIND_BOOL else {
            self = try Bool(Value(copying: raw, host: host))
            return
        }
        self = raw.as.boolean != 0
    }
    @inlinable public func lend(to body: (plugin_value) -> Void) { body(plugin_value_bool(self ? 1 : 0)) }
}

extension FixedWidthInteger where Self: ValueConvertible {
    /// The declared type: an int.
    @inlinable public static var kind: Value.Kind { .int }
    /// The number as an int; throws ``PluginError/Code/invalidValue`` if it exceeds `Int.max`.
    @inlinable public var value: Value {
        get throws(PluginError) {
            guard let int = Int(exactly: self) else { throw .outOfRange(String(self), Int.self) }
            return .int(int)
        }
    }
    /// Reads an int, or a double without a fraction; throws ``PluginError/Code/invalidValue`` if the number is out of
    /// range.
    public init(_ value: Value) throws(PluginError) {
        switch value {
        case .int(let int):
            guard let number = Self(exactly: int) else { throw .outOfRange(String(int), Self.self) }
            self = number
        case .double(let double):
            guard let number = Self(exactly: double) else { throw .outOfRange(String(double), Self.self) }
            self = number
        default: throw .mistyped(value, expected: "an int")
        }
    }
    /// Reads an argument.
    @inlinable public init(borrowing raw: plugin_value, host: UnsafePointer<plugin_host>) throws(PluginError) {
        guard raw.kind == PLUGIN_KIND_INT, let number = Self(exactly: raw.as.integer) else {
            self = try Self(Value(copying: raw, host: host))
            return
        }
        self = number
    }
    /// Lends the number to `body`; throws ``PluginError/Code/invalidValue`` if it exceeds `Int64.max`.
    @inlinable public func lend(to body: (plugin_value) -> Void) throws(PluginError) {
        guard let int = Int64(exactly: self) else { throw .outOfRange(String(self), Int.self) }
        body(plugin_value_int(int))
    }
}

extension Int: ValueConvertible {
    @inlinable public init(borrowing raw: plugin_value, host: UnsafePointer<plugin_host>) throws(PluginError) {
        guard raw.kind == PLUGIN_KIND_INT else {
            self = try Int(Value(copying: raw, host: host))
            return
        }
        self = Int(raw.as.integer)
    }
    @inlinable public func lend(to body: (plugin_value) -> Void) { body(plugin_value_int(Int64(self))) }
}
extension Int8: ValueConvertible {}
extension Int16: ValueConvertible {}
extension Int32: ValueConvertible {}
extension Int64: ValueConvertible {}
extension UInt: ValueConvertible {}
extension UInt8: ValueConvertible {}
extension UInt16: ValueConvertible {}
extension UInt32: ValueConvertible {}
extension UInt64: ValueConvertible {}

extension Double: ValueConvertible {
    @inlinable public static var kind: Value.Kind { .double }
    @inlinable public var value: Value { .double(self) }
    public init(_ value: Value) throws(PluginError) {
        guard let double = value.double else { throw .mistyped(value, expected: "a double") }
        self = double
    }
    @inlinable public init(borrowing raw: plugin_value, host: UnsafePointer<plugin_host>) throws(PluginError) {
        guard raw.kind == PLUGIN_KIND_DOUBLE else {
            self = try Double(Value(copying: raw, host: host))
            return
        }
        self = raw.as.real
    }
    @inlinable public func lend(to body: (plugin_value) -> Void) { body(plugin_value_double(self)) }
}

extension Float: ValueConvertible {
    @inlinable public static var kind: Value.Kind { .double }
    @inlinable public var value: Value { .double(Double(self)) }
    @inlinable public init(_ value: Value) throws(PluginError) { self = Float(try Double(value)) }
}

extension String: ValueConvertible {
    @inlinable public static var kind: Value.Kind { .string }
    @inlinable public var value: Value { .string(self) }
    public init(_ value: Value) throws(PluginError) {
        guard let string = value.string else { throw .mistyped(value, expected: "a string") }
        self = string
    }
    @inlinable public init(borrowing raw: plugin_value, host: UnsafePointer<plugin_host>) throws(PluginError) {
        guard raw.kind == PLUGIN_KIND_STRING else {
            self = try String(Value(copying: raw, host: host))
            return
        }
        self.init(copying: raw.as.string, count: Int(raw.count))
    }
    @inlinable public func lend(to body: (plugin_value) -> Void) throws(PluginError) {
        guard utf8.count <= UInt32.max else { throw .tooLong(utf8.count) }
        withPluginString { body(plugin_value_string($0.bytes, UInt32($0.count))) }
    }
}

// MARK: Other types

extension Bytes: ValueConvertible {
    public static var kind: Value.Kind { .bytes }
    public var value: Value { .bytes(self) }
    public init(_ value: Value) throws(PluginError) {
        guard let bytes = value.bytes else { throw .mistyped(value, expected: "bytes") }
        self = bytes
    }
}

/// Receives the bytes of an argument without copying them. The bytes are valid until the action returns, so use this
/// type in synchronous actions only.
extension UnsafeRawBufferPointer: ActionParameter {
    public static var kind: Value.Kind { .bytes }
    public init(borrowing raw: plugin_value, host: UnsafePointer<plugin_host>) throws(PluginError) {
        guard raw.kind == PLUGIN_KIND_BYTES else { throw .mistyped(Value(copying: raw, host: host), expected: "bytes") }
        self.init(start: raw.as.bytes, count: Int(raw.count))
    }
}

extension Value: ValueConvertible {
    public static var kind: Kind { .any }
    public init(_ value: Value) { self = value }
    public var value: Value { self }
}

extension Object: ValueConvertible {
    public static var kind: Value.Kind { .object }
    public var value: Value { .object(self) }
    public func lend(to body: (plugin_value) -> Void) { body(plugin_value_object(handle)) }
}

extension ValueConvertible where Self == Object {
    /// Reads an object.
    public init(_ value: Value) throws(PluginError) {
        guard let object = value.object else { throw .mistyped(value, expected: "an object") }
        self = object
    }
}

extension Array: ActionParameter, ActionResult, ValueConvertible where Element: ValueConvertible {
    public static var kind: Value.Kind { .list }
    public var value: Value {
        get throws(PluginError) {
            var list: [Value] = []
            list.reserveCapacity(count)
            for (index, element) in enumerated() {
                do throws(PluginError) { list.append(try element.value) } catch { throw error.within("[\(index)]") }
            }
            return .list(list)
        }
    }
    public init(_ value: Value) throws(PluginError) {
        guard let list = value.list else { throw .mistyped(value, expected: "a list") }
        self = []
        reserveCapacity(list.count)
        for (index, value) in list.enumerated() {
            do throws(PluginError) { append(try Element(value)) } catch { throw error.within("[\(index)]") }
        }
    }
}

extension Dictionary: ActionParameter, ActionResult, ValueConvertible where Key == String, Value: ValueConvertible {
    public static var kind: PluginABI.Value.Kind { .map }
    public var value: PluginABI.Value {
        get throws(PluginError) {
            var map: [String: PluginABI.Value] = [:]
            for (key, element) in self {
                do throws(PluginError) { map[key] = try element.value } catch {
                    throw error.within(ValueFault.step(key))
                }
            }
            return .map(map)
        }
    }
    public init(_ value: PluginABI.Value) throws(PluginError) {
        guard let map = value.map else { throw .mistyped(value, expected: "a map") }
        self.init(minimumCapacity: map.count)
        for (key, element) in map {
            do throws(PluginError) { self[key] = try Value(element) } catch { throw error.within(ValueFault.step(key)) }
        }
    }
}

/// Passes `nil` as null. (A parameter that may be missing is declared with `.optional`.)
extension Optional: ActionResult where Wrapped: ActionResult {
    public static var resultKind: Value.Kind { .any }
    public func lend(to body: (plugin_value) -> Void) throws(PluginError) {
        if let self { try self.lend(to: body) } else { body(plugin_value_null()) }
    }
}

/// The result of a closure that never returns.
extension Never: ActionResult {
    public static var resultKind: Value.Kind { .null }
    public func lend(to body: (plugin_value) -> Void) {}
}

/// Enumerations with raw values need only declare the conformance.
extension ValueConvertible where Self: RawRepresentable, RawValue: ValueConvertible {
    public static var kind: Value.Kind { RawValue.kind }
    public var value: Value { get throws(PluginError) { try rawValue.value } }
    public init(_ value: Value) throws(PluginError) {
        guard let known = Self(rawValue: try RawValue(value)) else {
            throw .value(.mistypedParameter, ValueFault.noCase(value, of: Self.self))
        }
        self = known
    }
}
