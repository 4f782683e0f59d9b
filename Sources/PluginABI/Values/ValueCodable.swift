/// A `Codable` type whose values can be parameters and results: declare the conformance, and nothing else.
///
///     struct Detail: ValueCodable { var title: String; var page: Int }
public protocol ValueCodable: ValueConvertible, Codable {}

extension ValueCodable {
    public static var kind: Value.Kind { .any }
    public init(_ value: Value) throws(PluginError) { self = try value.decode(Self.self) }
    public var value: Value { get throws(PluginError) { try Value(encoding: self) } }
}

/// An enumeration with raw values is its raw value, also to the host, which checks and converts it.
extension ValueCodable where Self: RawRepresentable, RawValue: ValueConvertible {
    public static var kind: Value.Kind { RawValue.kind }
}

extension Value {
    /// Encodes any `Encodable` value.
    ///
    /// - Throws: ``PluginError/Code/invalidValue``, with the path of what cannot be encoded.
    public init(encoding value: some Encodable) throws(PluginError) {
        do {
            let encoder = ValueEncoder(codingPath: [])
            self = try encoder.encode(value)
        } catch {
            throw PluginError(.invalidValue, "\(type(of: value)) cannot be encoded: \(CodingPath.describe(error))")
        }
    }

    /// Decodes a `Decodable` type.
    ///
    /// - Throws: ``PluginError/Code/mistypedParameter``, with the path of what does not fit.
    public func decode<T: Decodable>(_ type: T.Type = T.self) throws(PluginError) -> T {
        do {
            return try ValueDecoder(self, codingPath: []).decode(type)
        } catch {
            throw PluginError(.mistypedParameter, "The value is no \(type): \(CodingPath.describe(error))")
        }
    }

    /// Reads the value as a type, a number as another kind of number where nothing is lost.
    ///
    /// - Throws: ``PluginError/Code/mistypedParameter`` for a value that does not fit.
    public func get<T: ValueConvertible>(_ type: T.Type = T.self) throws(PluginError) -> T { try T(self) }
}

/// The wording of coding errors.
enum CodingPath {
    static func describe(_ error: any Error) -> String {
        switch error {
        case DecodingError.keyNotFound(let key, let context):
            "“\(key.stringValue.shortened)” is missing\(at(context.codingPath))."
        case DecodingError.typeMismatch(_, let context), DecodingError.valueNotFound(_, let context),
            DecodingError.dataCorrupted(let context):
            "\(context.debugDescription)\(at(context.codingPath))"
        case EncodingError.invalidValue(_, let context): "\(context.debugDescription)\(at(context.codingPath))"
        case let error as PluginError: error.message
        default: String(describing: error)
        }
    }

    private static func at(_ path: [any CodingKey]) -> String {
        path.isEmpty
            ? "" : " (at \(path.map { $0.intValue.map(String.init) ?? $0.stringValue }.joined(separator: ".")))"
    }
}

/// A key of a list's element, or `super`.
struct ValueKey: CodingKey {
    let stringValue: String
    let intValue: Int?

    init(stringValue: String) { (self.stringValue, intValue) = (stringValue, nil) }
    init(intValue: Int) { (stringValue, self.intValue) = (String(intValue), intValue) }
    static let superclass = ValueKey(stringValue: "super")
}
