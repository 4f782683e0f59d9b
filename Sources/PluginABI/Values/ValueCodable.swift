/// A `Codable` type whose values can be parameters and results. A type need only declare the conformance.
///
///     struct Detail: ValueCodable { var title: String; var page: Int }
public protocol ValueCodable: ValueConvertible, Codable {}

extension ValueCodable {
    public static var kind: Value.Kind { .any }
    public init(_ value: Value) throws(PluginError) { self = try value.decode(Self.self) }
    public var value: Value { get throws(PluginError) { try Value(encoding: self) } }
}

/// Represents an enumeration with raw values as its raw value, which the host checks and converts.
extension ValueCodable where Self: RawRepresentable, RawValue: ValueConvertible {
    public static var kind: Value.Kind { RawValue.kind }
}

extension Value {
    /// Encodes any `Encodable` value.
    ///
    /// - Throws: ``PluginError/Code/invalidValue``, with the path of the part that cannot be encoded.
    public init(encoding value: some Encodable) throws(PluginError) {
        do {
            self = try ValueEncoder(codingPath: []).encode(value)
        } catch {
            throw CodingPath.pluginError(.invalidValue, error)
        }
    }

    /// Decodes a `Decodable` type.
    ///
    /// - Throws: ``PluginError/Code/mistypedParameter``, with the path of the part that does not match the type.
    public func decode<T: Decodable>(_ type: T.Type = T.self) throws(PluginError) -> T {
        do {
            return try ValueDecoder(self, codingPath: []).decode(type)
        } catch {
            throw CodingPath.pluginError(.mistypedParameter, error)
        }
    }

    /// Reads the value as a type. A number is converted to another kind of number if nothing is lost.
    ///
    /// - Throws: ``PluginError/Code/mistypedParameter`` if the value is not of that type;
    ///   ``PluginError/Code/invalidValue`` if a number is out of range.
    public func get<T: ValueConvertible>(_ type: T.Type = T.self) throws(PluginError) -> T { try T(self) }
}

/// The wording of coding errors.
enum CodingPath {
    static func describe(_ error: any Error) -> String {
        switch error {
        case is DecodingError, is EncodingError: pluginError(.mistypedParameter, error).message
        case let error as PluginError: error.message
        default: String(describing: error)
        }
    }

    /// Converts a coding error to an error about a value.
    static func pluginError(_ code: PluginError.Code, _ error: any Error) -> PluginError {
        var (path, problem) = ([] as [any CodingKey], PluginError(code, String(describing: error)))
        switch error {
        case DecodingError.keyNotFound(let key, let context):
            (path, problem) = (context.codingPath + [key], .value(code, "is missing"))
        case DecodingError.typeMismatch(_, let context), DecodingError.valueNotFound(_, let context),
            DecodingError.dataCorrupted(let context):
            let known = context.underlyingError as? PluginError
            (path, problem) = (context.codingPath, known ?? PluginError(code, context.debugDescription))
        case EncodingError.invalidValue(_, let context):
            (path, problem) = (context.codingPath, PluginError(code, context.debugDescription))
        case let error as PluginError: problem = error
        default: break
        }
        problem = problem.within(text(path))
        problem.code = code
        return problem
    }

    /// Returns a coding path as text: `[1].url`.
    static func text(_ path: [any CodingKey]) -> String {
        path.map { key in key.intValue.map { "[\($0)]" } ?? ValueFault.step(key.stringValue) }.joined()
    }
}

/// The key of a list element, or `super`.
struct ValueKey: CodingKey {
    let stringValue: String
    let intValue: Int?

    init(stringValue: String) { (self.stringValue, intValue) = (stringValue, nil) }
    init(intValue: Int) { (stringValue, self.intValue) = (String(intValue), intValue) }
    static let superclass = ValueKey(stringValue: "super")
}
