/// A type of a façade, which is read from a value and written as one. Errors state which part of the value is wrong.
/// Code that `pluginhost facade` generates conforms to it.
public protocol TypedValue: Sendable {
    /// Reads a value.
    ///
    /// - Throws: ``PluginError/Code/mistypedParameter`` if it is not of this type.
    init(from reader: ValueReader) throws(PluginError)
    /// Returns the value; throws ``PluginError/Code/invalidValue`` if it cannot be expressed.
    func written() throws(PluginError) -> Value
}

/// A value, or a part of one, that a ``TypedValue`` is read from.
public struct ValueReader: Sendable {
    /// The value; `nil` for a field that is missing.
    public let value: Value?
    /// The path of the value: `drafts[1].url`.
    public let path: String

    /// - Parameters:
    ///   - value: The whole value.
    ///   - path: The name of the whole value in errors.
    public init(_ value: Value, path: String) { (self.value, self.path) = (value, path) }

    init(_ value: Value?, at path: String) { (self.value, self.path) = (value, path) }

    /// Reads the value as a type.
    public func get<T: TypedValue>(_ type: T.Type = T.self) throws(PluginError) -> T { try T(from: self) }

    /// Reads a field of a record.
    public func get<T: TypedValue>(_ field: String, as type: T.Type = T.self) throws(PluginError) -> T {
        guard case .map(let map) = try present() else { throw mistyped(expected: "a map") }
        return try T(from: ValueReader(map[field], at: path + ValueFault.step(field)))
    }

    /// Returns an error about the value.
    ///
    /// - Parameter problem: What is wrong, the end of a sentence: `is missing`.
    public func error(_ problem: String) -> PluginError { .value(.mistypedParameter, problem).within(path) }

    /// Returns the value; throws an error if it is missing.
    func present() throws(PluginError) -> Value {
        guard let value else { throw error("is missing") }
        return value
    }

    func mistyped(expected: String) -> PluginError {
        .mistyped(value ?? .null, expected: expected).within(path)
    }

    func convertible<T: ValueConvertible>(_ type: T.Type) throws(PluginError) -> T {
        let value = try present()
        do throws(PluginError) { return try T(value) } catch { throw error.within(path) }
    }
}

extension Value {
    /// Reads the value as the result of an action, for generated code.
    ///
    /// - Parameters:
    ///   - action: The name of the action, for the error.
    ///   - type: The declared type.
    /// - Throws: ``PluginError/Code/invalidResult``, with the path of the part that is not of its declared type.
    public func typed<T: TypedValue>(of action: String, as type: T.Type = T.self) throws(PluginError) -> T {
        do throws(PluginError) { return try T(from: ValueReader(self, path: "")) } catch {
            throw .invalidResult(error, of: action)
        }
    }
}

// MARK: Types that are values themselves

extension TypedValue where Self: ValueConvertible {
    /// Reads a value.
    public init(from reader: ValueReader) throws(PluginError) { self = try reader.convertible(Self.self) }
    /// The value.
    public func written() throws(PluginError) -> Value { try value }
}

extension Bool: TypedValue {}
extension Int: TypedValue {}
extension Double: TypedValue {}
extension String: TypedValue {}
extension Bytes: TypedValue {}

extension Value: TypedValue {
    /// Returns the value; null for a field that is missing.
    public init(from reader: ValueReader) { self = reader.value ?? .null }
}

extension Object: TypedValue {}

extension TypedValue where Self == Object {
    /// Reads an object.
    public init(from reader: ValueReader) throws(PluginError) {
        guard let object = try reader.present().object else { throw reader.mistyped(expected: "an object") }
        self = object
    }
}

extension TypedValue where Self: RawRepresentable, RawValue: TypedValue & ValueConvertible {
    /// Reads a case of an enumeration.
    public init(from reader: ValueReader) throws(PluginError) {
        let raw = try reader.convertible(RawValue.self)
        guard let known = Self(rawValue: raw) else {
            throw reader.error(ValueFault.noCase(try raw.value, of: Self.self))
        }
        self = known
    }
    /// The raw value.
    public func written() throws(PluginError) -> Value { try rawValue.value }
}

// MARK: Types that contain others

extension Array: TypedValue where Element: TypedValue {
    public init(from reader: ValueReader) throws(PluginError) {
        guard case .list(let list) = try reader.present() else { throw reader.mistyped(expected: "a list") }
        self = []
        reserveCapacity(list.count)
        for (index, value) in list.enumerated() {
            append(try Element(from: ValueReader(value, at: "\(reader.path)[\(index)]")))
        }
    }
    public func written() throws(PluginError) -> Value {
        .list(try map { (element) throws(PluginError) in try element.written() })
    }
}

extension Dictionary: TypedValue where Key == String, Value: TypedValue {
    public init(from reader: ValueReader) throws(PluginError) {
        guard case .map(let map) = try reader.present() else { throw reader.mistyped(expected: "a map") }
        self.init(minimumCapacity: map.count)
        for (key, value) in map {
            self[key] = try Value(from: ValueReader(value, at: reader.path + ValueFault.step(key)))
        }
    }
    public func written() throws(PluginError) -> PluginABI.Value {
        var map: [String: PluginABI.Value] = [:]
        for (key, element) in self { map[key] = try element.written() }
        return .map(map)
    }
}

/// Null, and a field that is missing, are `nil`.
extension Optional: TypedValue where Wrapped: TypedValue {
    public init(from reader: ValueReader) throws(PluginError) {
        guard let value = reader.value, !value.isNull else {
            self = nil
            return
        }
        self = try Wrapped(from: ValueReader(value, at: reader.path))
    }
    public func written() throws(PluginError) -> Value { try self?.written() ?? .null }
}
