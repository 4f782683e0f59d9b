/// An encoder that produces a ``Value``. Structures become maps, arrays become lists; ``Value``, ``Bytes`` and
/// ``Object`` stay as they are.
final class ValueEncoder: Encoder {
    let codingPath: [any CodingKey]
    var userInfo: [CodingUserInfoKey: Any] { [:] }
    private var content = Content.nothing

    private enum Content {
        case nothing
        case single(Value)
        case map([String: Slot])
        case list([Slot])
    }

    /// A value, or a nested encoder that has its value when encoding is complete.
    private enum Slot {
        case value(Value)
        case encoder(ValueEncoder)

        var value: Value {
            switch self {
            case .value(let value): value
            case .encoder(let encoder): encoder.value
            }
        }
    }

    init(codingPath: [any CodingKey]) { self.codingPath = codingPath }

    var value: Value {
        switch content {
        case .nothing: .map([:])
        case .single(let value): value
        case .map(let entries): .map(entries.mapValues(\.value))
        case .list(let elements): .list(elements.map(\.value))
        }
    }

    /// Encodes a value. A value that is ``ValueConvertible``, but not ``ValueCodable``, is converted directly.
    func encode(_ value: some Encodable) throws -> Value {
        guard codingPath.count <= PLUGIN_DEPTH_MAX else {
            throw PluginError.value(.invalidValue, "is nested more than \(PLUGIN_DEPTH_MAX) levels deep")
        }
        if let value = value as? any ValueConvertible, !(value is any ValueCodable) {
            do throws(PluginError) { return try value.value } catch {
                throw error.within(CodingPath.text(codingPath))
            }
        }
        let nested = ValueEncoder(codingPath: codingPath)
        try value.encode(to: nested)
        return nested.value
    }

    func container<Key: CodingKey>(keyedBy type: Key.Type) -> KeyedEncodingContainer<Key> {
        if case .map = content {} else { content = .map([:]) }
        return KeyedEncodingContainer(Keyed(encoder: self))
    }

    func unkeyedContainer() -> any UnkeyedEncodingContainer {
        if case .list = content {} else { content = .list([]) }
        return Unkeyed(encoder: self)
    }

    func singleValueContainer() -> any SingleValueEncodingContainer { Single(encoder: self) }

    private func nested(_ key: any CodingKey) -> ValueEncoder { ValueEncoder(codingPath: codingPath + [key]) }

    private func set(_ slot: Slot, for key: String) {
        guard case .map(var entries) = content else { return }
        content = .nothing
        entries[key] = slot
        content = .map(entries)
    }

    private func append(_ slot: Slot) {
        guard case .list(var elements) = content else { return }
        content = .nothing
        elements.append(slot)
        content = .list(elements)
    }

    private struct Keyed<Key: CodingKey>: KeyedEncodingContainerProtocol {
        let encoder: ValueEncoder
        var codingPath: [any CodingKey] { encoder.codingPath }

        func encodeNil(forKey key: Key) { encoder.set(.value(.null), for: key.stringValue) }
        func encode(_ value: some Encodable, forKey key: Key) throws {
            encoder.set(.value(try encoder.nested(key).encode(value)), for: key.stringValue)
        }
        func nestedContainer<Nested: CodingKey>(
            keyedBy type: Nested.Type, forKey key: Key
        ) -> KeyedEncodingContainer<Nested> { nested(key).container(keyedBy: type) }
        func nestedUnkeyedContainer(forKey key: Key) -> any UnkeyedEncodingContainer { nested(key).unkeyedContainer() }
        func superEncoder() -> any Encoder { nested(ValueKey.superclass) }
        func superEncoder(forKey key: Key) -> any Encoder { nested(key) }

        private func nested(_ key: any CodingKey) -> ValueEncoder {
            let nested = encoder.nested(key)
            encoder.set(.encoder(nested), for: key.stringValue)
            return nested
        }
    }

    private struct Unkeyed: UnkeyedEncodingContainer {
        let encoder: ValueEncoder
        var codingPath: [any CodingKey] { encoder.codingPath }
        var count: Int { if case .list(let elements) = encoder.content { elements.count } else { 0 } }

        func encodeNil() { encoder.append(.value(.null)) }
        func encode(_ value: some Encodable) throws {
            encoder.append(.value(try encoder.nested(ValueKey(intValue: count)).encode(value)))
        }
        func nestedContainer<Nested: CodingKey>(keyedBy type: Nested.Type) -> KeyedEncodingContainer<Nested> {
            nested().container(keyedBy: type)
        }
        func nestedUnkeyedContainer() -> any UnkeyedEncodingContainer { nested().unkeyedContainer() }
        func superEncoder() -> any Encoder { nested() }

        private func nested() -> ValueEncoder {
            let nested = encoder.nested(ValueKey(intValue: count))
            encoder.append(.encoder(nested))
            return nested
        }
    }

    private struct Single: SingleValueEncodingContainer {
        let encoder: ValueEncoder
        var codingPath: [any CodingKey] { encoder.codingPath }

        func encodeNil() { encoder.content = .single(.null) }
        func encode(_ value: some Encodable) throws { encoder.content = .single(try encoder.encode(value)) }
    }
}

extension Value: Codable {
    /// Encodes the value in any format. Bytes are encoded as base64; objects cannot be encoded.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        switch self {
        case .null: try container.encodeNil()
        case .bool(let value): try container.encode(value)
        case .int(let value): try container.encode(value)
        case .double(let value): try container.encode(value)
        case .string(let value): try container.encode(value)
        case .bytes(let value): try container.encode(value.base64)
        case .list(let value): try container.encode(value)
        case .map(let value): try container.encode(value)
        case .object:
            throw EncodingError.invalidValue(
                self, .init(codingPath: encoder.codingPath, debugDescription: "An object cannot be encoded."))
        }
    }

    /// Decodes a value from any format. A number without a fraction becomes an int.
    public init(from decoder: any Decoder) throws {
        if let decoder = decoder as? ValueDecoder {
            self = decoder.value
            return
        }
        let container = try decoder.singleValueContainer()
        if container.decodeNil() {
            self = .null
        } else if let value = try? container.decode(Bool.self) {
            self = .bool(value)
        } else if let value = try? container.decode(Int.self) {
            self = .int(value)
        } else if let value = try? container.decode(Double.self) {
            self = .double(value)
        } else if let value = try? container.decode(String.self) {
            self = .string(value)
        } else if let value = try? container.decode([Value].self) {
            self = .list(value)
        } else {
            self = .map(try container.decode([String: Value].self))
        }
    }
}

extension Bytes: Codable {
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.unkeyedContainer()
        for byte in self { try container.encode(byte) }
    }

    public init(from decoder: any Decoder) throws {
        if let decoder = decoder as? ValueDecoder, let bytes = decoder.value.bytes {
            self = bytes
        } else {
            self.init(try decoder.singleValueContainer().decode([UInt8].self))
        }
    }
}
