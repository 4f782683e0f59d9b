/// A recording of what a type requests from a decoder, which returns the simplest values: 0, empty lists.
final class TypeRecording {
    struct Field {
        let key: String
        let type: Any.Type
        /// Whether the field may be missing.
        let isOptional: Bool
    }

    enum Form {
        case keyed, unkeyed
        case single(Any.Type)
    }

    private(set) var form: Form?
    private(set) var fields: [Field] = []
    /// The reason why the fields do not describe a value completely: the end of a sentence.
    private(set) var problem: String?
    /// Whether the type is an enumeration with payloads, which Swift encodes in a special form.
    private(set) var isEnumeration = false
    fileprivate let memory = SimplestValue.Memory()

    /// Decodes a value of the type twice. The second decoder refuses every request.
    init<T: Decodable>(of type: T.Type, in book: TypeBook) {
        var made: T?
        do {
            made = try T(from: RecordingDecoder(recording: self))
        } catch {
            problem = problem ?? "its init(from:) ends with the error: \(CodingPath.describe(error))"
        }
        let refusal = Refusal()
        _ = try? T(from: RefusingDecoder(refusal: refusal))
        if refusal.count > 1 {
            // The type tries several forms.
            (form, fields) = (nil, [])
        } else if let made, case .keyed = form, problem == nil {
            problem = difference(of: made)
        }
        if problem != nil { problem! += Self.advice }
    }

    private static let advice = " Make it ValueTyped to declare what it is."

    /// Returns how the fields differ from those that a synthesized `init(from:)` decodes: stored properties in order.
    private func difference(of value: Any) -> String? {
        let mirror = Mirror(reflecting: value)
        isEnumeration = mirror.displayStyle == .enum
        if isEnumeration { return "it is an enumeration without raw values." }
        var properties = mirror.children.map { Self.unwrapped(type(of: $0.value)) }[...]
        for field in fields {
            guard let index = properties.firstIndex(where: { $0 == Self.unwrapped(field.type) }) else {
                return "it decodes “\(field.key.shortened)” as \(field.type), but has no such property."
            }
            properties = properties[(index + 1)...]
        }
        return nil
    }

    private static func unwrapped(_ type: Any.Type) -> ObjectIdentifier {
        ObjectIdentifier((type as? any AnyOptional.Type)?.wrapped ?? type)
    }

    // MARK: What the decoder records

    func ask(_ form: Form) { if self.form == nil { self.form = form } }

    func add(_ key: String, _ type: Any.Type, isOptional: Bool = false) throws {
        if let known = fields.first(where: { $0.key == key }) {
            if known.type != type { problem = "it decodes “\(key.shortened)” as several types." }
            return
        }
        guard fields.count < TypeBook.fieldsMax else {
            problem = "it has more than \(TypeBook.fieldsMax) fields."
            throw NothingThere()
        }
        fields.append(Field(key: key, type: type, isOptional: isOptional))
    }

    /// Makes a value for a field.
    func make<T: Decodable>(_ type: T.Type, for key: String) throws -> T {
        if let value = SimplestValue.make(type, depth: 0, memory) { return value }
        problem = "the field “\(key.shortened)” has the type \(type), for which no sample value can be made."
        throw NothingThere()
    }
}

/// The error of these decoders for a request for which they return no value.
struct NothingThere: Error, CustomStringConvertible {
    var description: String { "there is nothing to decode." }
}

/// A decoder that records what one type asks it for.
private struct RecordingDecoder: Decoder {
    let recording: TypeRecording
    var codingPath: [any CodingKey] { [] }
    var userInfo: [CodingUserInfoKey: Any] { [:] }

    func container<Key: CodingKey>(keyedBy type: Key.Type) -> KeyedDecodingContainer<Key> {
        recording.ask(.keyed)
        return KeyedDecodingContainer(Keyed<Key>(recording: recording))
    }
    func unkeyedContainer() -> any UnkeyedDecodingContainer {
        recording.ask(.unkeyed)
        return EmptyList()
    }
    func singleValueContainer() -> any SingleValueDecodingContainer { Single(recording: recording) }

    private struct Keyed<Key: CodingKey>: KeyedDecodingContainerProtocol {
        let recording: TypeRecording
        var codingPath: [any CodingKey] { [] }
        var allKeys: [Key] { SimplestValue.key(Key.self).map { [$0] } ?? [] }

        func contains(_ key: Key) -> Bool { true }
        func decodeNil(forKey key: Key) -> Bool { false }
        func decode<T: Decodable>(_ type: T.Type, forKey key: Key) throws -> T {
            try recording.add(key.stringValue, type)
            return try recording.make(type, for: key.stringValue)
        }
        func decodeIfPresent<T: Decodable>(_ type: T.Type, forKey key: Key) throws -> T? {
            try recording.add(key.stringValue, type, isOptional: true)
            return nil
        }
        func nestedContainer<Nested: CodingKey>(
            keyedBy type: Nested.Type, forKey key: Key
        ) throws -> KeyedDecodingContainer<Nested> {
            try recording.add(key.stringValue, [String: Value].self)
            return KeyedDecodingContainer(SimplestDecoder.Keyed<Nested>(depth: 0, text: "", memory: recording.memory))
        }
        func nestedUnkeyedContainer(forKey key: Key) throws -> any UnkeyedDecodingContainer {
            try recording.add(key.stringValue, [Value].self)
            return EmptyList()
        }
        func superDecoder() throws -> any Decoder { throw NothingThere() }
        func superDecoder(forKey key: Key) throws -> any Decoder { throw NothingThere() }

        // The default implementations would call `contains`, `decodeNil` and `decode` instead.
        func decodeIfPresent(_ type: Bool.Type, forKey key: Key) throws -> Bool? { try missing(type, key) }
        func decodeIfPresent(_ type: String.Type, forKey key: Key) throws -> String? { try missing(type, key) }
        func decodeIfPresent(_ type: Double.Type, forKey key: Key) throws -> Double? { try missing(type, key) }
        func decodeIfPresent(_ type: Float.Type, forKey key: Key) throws -> Float? { try missing(type, key) }
        func decodeIfPresent(_ type: Int.Type, forKey key: Key) throws -> Int? { try missing(type, key) }
        func decodeIfPresent(_ type: Int8.Type, forKey key: Key) throws -> Int8? { try missing(type, key) }
        func decodeIfPresent(_ type: Int16.Type, forKey key: Key) throws -> Int16? { try missing(type, key) }
        func decodeIfPresent(_ type: Int32.Type, forKey key: Key) throws -> Int32? { try missing(type, key) }
        func decodeIfPresent(_ type: Int64.Type, forKey key: Key) throws -> Int64? { try missing(type, key) }
        func decodeIfPresent(_ type: UInt.Type, forKey key: Key) throws -> UInt? { try missing(type, key) }
        func decodeIfPresent(_ type: UInt8.Type, forKey key: Key) throws -> UInt8? { try missing(type, key) }
        func decodeIfPresent(_ type: UInt16.Type, forKey key: Key) throws -> UInt16? { try missing(type, key) }
        func decodeIfPresent(_ type: UInt32.Type, forKey key: Key) throws -> UInt32? { try missing(type, key) }
        func decodeIfPresent(_ type: UInt64.Type, forKey key: Key) throws -> UInt64? { try missing(type, key) }

        private func missing<T>(_ type: T.Type, _ key: Key) throws -> T? {
            try recording.add(key.stringValue, type, isOptional: true)
            return nil
        }
    }

    private struct Single: SingleValueDecodingContainer {
        let recording: TypeRecording
        var codingPath: [any CodingKey] { [] }

        func decodeNil() -> Bool { false }
        func decode<T: Decodable>(_ type: T.Type) throws -> T {
            recording.ask(.single(type))
            return try recording.make(type, for: "value")
        }
    }
}

// MARK: Refusing

private final class Refusal {
    var count = 0
}

/// A decoder that refuses every request for a value, and counts the requests.
private struct RefusingDecoder: Decoder, SingleValueDecodingContainer {
    let refusal: Refusal
    var codingPath: [any CodingKey] { [] }
    var userInfo: [CodingUserInfoKey: Any] { [:] }

    func container<Key: CodingKey>(keyedBy type: Key.Type) throws -> KeyedDecodingContainer<Key> { throw refuse() }
    func unkeyedContainer() throws -> any UnkeyedDecodingContainer { throw refuse() }
    func singleValueContainer() -> any SingleValueDecodingContainer { self }
    func decodeNil() -> Bool { false }
    func decode<T: Decodable>(_ type: T.Type) throws -> T { throw refuse() }

    private func refuse() -> NothingThere {
        refusal.count += 1
        return NothingThere()
    }
}
