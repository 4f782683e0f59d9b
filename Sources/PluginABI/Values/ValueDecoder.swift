/// A decoder of a ``Value``.
final class ValueDecoder: Decoder {
    let value: Value
    let codingPath: [any CodingKey]
    var userInfo: [CodingUserInfoKey: Any] { [:] }

    init(_ value: Value, codingPath: [any CodingKey]) {
        (self.value, self.codingPath) = (value, codingPath)
    }

    /// Decodes a type. A type that is ``ValueConvertible``, but not ``ValueCodable``, is read directly.
    func decode<T: Decodable>(_ type: T.Type) throws -> T {
        if let direct = type as? any ValueConvertible.Type, !(type is any ValueCodable.Type) {
            do {
                if let decoded = try direct.init(value) as? T { return decoded }
            } catch {
                throw mismatch(type, error)
            }
        }
        do { return try T(from: self) } catch DecodingError.dataCorrupted(let context) {
            // Swift's error for an enumeration with raw values does not list the valid ones.
            guard let type = type as? any (RawRepresentable & ValueConvertible).Type,
                context.codingPath.count == codingPath.count, context.underlyingError == nil,
                value.string != nil || value.int != nil
            else { throw DecodingError.dataCorrupted(context) }
            throw mismatch(type, .value(.mistypedParameter, ValueFault.noCase(value, of: type)))
        }
    }

    func container<Key: CodingKey>(keyedBy type: Key.Type) throws -> KeyedDecodingContainer<Key> {
        guard let map = value.map else {
            throw mismatch([String: Value].self, .mistyped(value, expected: "a map"))
        }
        return KeyedDecodingContainer(Keyed(decoder: self, map: map))
    }

    func unkeyedContainer() throws -> any UnkeyedDecodingContainer {
        guard let list = value.list else {
            throw mismatch([Value].self, .mistyped(value, expected: "a list"))
        }
        return Unkeyed(decoder: self, list: list)
    }

    func singleValueContainer() -> any SingleValueDecodingContainer { Single(decoder: self) }

    private func nested(_ value: Value, _ key: any CodingKey) -> ValueDecoder {
        ValueDecoder(value, codingPath: codingPath + [key])
    }

    private func mismatch(_ type: Any.Type, _ error: PluginError) -> DecodingError {
        .typeMismatch(
            type, .init(codingPath: codingPath, debugDescription: error.message, underlyingError: error))
    }

    private struct Keyed<Key: CodingKey>: KeyedDecodingContainerProtocol {
        let decoder: ValueDecoder
        let map: [String: Value]
        var codingPath: [any CodingKey] { decoder.codingPath }
        var allKeys: [Key] { map.keys.compactMap(Key.init(stringValue:)) }

        func contains(_ key: Key) -> Bool { map[key.stringValue] != nil }
        func decodeNil(forKey key: Key) throws -> Bool { try value(key).isNull }
        func decode<T: Decodable>(_ type: T.Type, forKey key: Key) throws -> T { try nested(key).decode(type) }
        func nestedContainer<Nested: CodingKey>(
            keyedBy type: Nested.Type, forKey key: Key
        ) throws -> KeyedDecodingContainer<Nested> { try nested(key).container(keyedBy: type) }
        func nestedUnkeyedContainer(forKey key: Key) throws -> any UnkeyedDecodingContainer {
            try nested(key).unkeyedContainer()
        }
        func superDecoder() -> any Decoder { decoder.nested(map["super"] ?? .null, ValueKey.superclass) }
        func superDecoder(forKey key: Key) throws -> any Decoder { try nested(key) }

        private func nested(_ key: Key) throws -> ValueDecoder { decoder.nested(try value(key), key) }
        private func value(_ key: Key) throws -> Value {
            guard let value = map[key.stringValue] else {
                throw DecodingError.keyNotFound(key, .init(codingPath: codingPath, debugDescription: ""))
            }
            return value
        }
    }

    private struct Unkeyed: UnkeyedDecodingContainer {
        let decoder: ValueDecoder
        let list: [Value]
        var currentIndex = 0
        var codingPath: [any CodingKey] { decoder.codingPath }
        var count: Int? { list.count }
        var isAtEnd: Bool { currentIndex >= list.count }

        mutating func decodeNil() throws -> Bool {
            guard try peek().value.isNull else { return false }
            currentIndex += 1
            return true
        }
        mutating func decode<T: Decodable>(_ type: T.Type) throws -> T {
            let decoded = try peek().decode(type)
            currentIndex += 1
            return decoded
        }
        mutating func nestedContainer<Key: CodingKey>(keyedBy type: Key.Type) throws -> KeyedDecodingContainer<Key> {
            try next().container(keyedBy: type)
        }
        mutating func nestedUnkeyedContainer() throws -> any UnkeyedDecodingContainer { try next().unkeyedContainer() }
        mutating func superDecoder() throws -> any Decoder { try next() }

        private func peek() throws -> ValueDecoder {
            guard !isAtEnd else {
                throw DecodingError.valueNotFound(
                    Value.self,
                    .init(codingPath: codingPath, debugDescription: "The list has only \(list.count) elements."))
            }
            return decoder.nested(list[currentIndex], ValueKey(intValue: currentIndex))
        }
        private mutating func next() throws -> ValueDecoder {
            defer { currentIndex += 1 }
            return try peek()
        }
    }

    private struct Single: SingleValueDecodingContainer {
        let decoder: ValueDecoder
        var codingPath: [any CodingKey] { decoder.codingPath }

        func decodeNil() -> Bool { decoder.value.isNull }
        func decode<T: Decodable>(_ type: T.Type) throws -> T { try decoder.decode(type) }
    }
}
