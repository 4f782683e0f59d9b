/// Makes values for decoders that record: 0, an empty text, an empty list, the first case.
enum SimplestValue {
    /// Texts that some types need: a number, an identifier, an address, a date.
    private static let texts = [
        "", "0", "00000000-0000-0000-0000-000000000000", "http://localhost", "2000-01-01T00:00:00Z",
    ]

    /// The values of a recording, by their types: each is made once, however many others it is a part of.
    final class Memory {
        /// `nil` for a type without a possible value, and for one whose value is being made and would contain itself.
        fileprivate var values: [ObjectIdentifier: Any?] = [:]
    }

    /// Makes a value; `nil` if the type accepts none of those that are tried.
    ///
    /// - Parameter depth: The number of values that enclose it.
    static func make<T: Decodable>(_ type: T.Type, depth: Int, _ memory: Memory) -> T? {
        guard depth < TypeBook.depthMax else { return nil }
        let identifier = ObjectIdentifier(type)
        if let known = memory.values[identifier] { return known as? T }
        memory.values.updateValue(nil, forKey: identifier)
        guard let value = made(type, depth, memory) else { return nil }
        memory.values.updateValue(value, forKey: identifier)
        return value
    }

    private static func made<T: Decodable>(_ type: T.Type, _ depth: Int, _ memory: Memory) -> T? {
        if let type = type as? any CaseIterable.Type, let first = first(of: type) as? T { return first }
        for text in texts {
            if let value = try? T(from: SimplestDecoder(depth: depth + 1, text: text, memory: memory)) { return value }
        }
        return type is any RawRepresentable.Type ? firstCase(type) : nil
    }

    private static func first<T: CaseIterable>(of type: T.Type) -> Any? { type.allCases.first }

    /// Returns a key of a synthesized enumeration of keys.
    static func key<Key: CodingKey>(_ type: Key.Type) -> Key? { firstCase(type) }

    /// Returns the first case of an enumeration whose payloads, if any, contain no references; `nil` for other types.
    private static func firstCase<T>(_ type: T.Type) -> T? {
        // The first word of a type's metadata is its kind.
        let kind = unsafeBitCast(type as Any.Type, to: UnsafePointer<Int>.self).pointee
        guard kind == 0x201, _isPOD(type), MemoryLayout<T>.size <= 64 else { return nil }
        // Sound: Swift numbers such cases from 0, and a payload of zeros is a value of a type without references.
        return withUnsafeTemporaryAllocation(of: T.self, capacity: 1) { memory in
            UnsafeMutableRawBufferPointer(memory).initializeMemory(as: UInt8.self, repeating: 0)
            return memory.baseAddress?.move()
        }
    }
}

/// A decoder that returns the simplest value for every request.
struct SimplestDecoder: Decoder, SingleValueDecodingContainer {
    let depth: Int
    let text: String
    let memory: SimplestValue.Memory
    var codingPath: [any CodingKey] { [] }
    var userInfo: [CodingUserInfoKey: Any] { [:] }

    func container<Key: CodingKey>(keyedBy type: Key.Type) -> KeyedDecodingContainer<Key> {
        KeyedDecodingContainer(Keyed<Key>(depth: depth, text: text, memory: memory))
    }
    func unkeyedContainer() -> any UnkeyedDecodingContainer { EmptyList() }
    func singleValueContainer() -> any SingleValueDecodingContainer { self }

    func decodeNil() -> Bool { true }
    func decode(_ type: String.Type) -> String { text }
    func decode(_ type: Bool.Type) -> Bool { false }
    func decode(_ type: Double.Type) -> Double { 0 }
    func decode(_ type: Float.Type) -> Float { 0 }
    func decode(_ type: Int.Type) -> Int { 0 }
    func decode(_ type: Int8.Type) -> Int8 { 0 }
    func decode(_ type: Int16.Type) -> Int16 { 0 }
    func decode(_ type: Int32.Type) -> Int32 { 0 }
    func decode(_ type: Int64.Type) -> Int64 { 0 }
    func decode(_ type: UInt.Type) -> UInt { 0 }
    func decode(_ type: UInt8.Type) -> UInt8 { 0 }
    func decode(_ type: UInt16.Type) -> UInt16 { 0 }
    func decode(_ type: UInt32.Type) -> UInt32 { 0 }
    func decode(_ type: UInt64.Type) -> UInt64 { 0 }
    func decode<T: Decodable>(_ type: T.Type) throws -> T {
        guard let value = SimplestValue.make(type, depth: depth, memory) else { throw NothingThere() }
        return value
    }

    struct Keyed<Key: CodingKey>: KeyedDecodingContainerProtocol {
        let depth: Int
        let text: String
        let memory: SimplestValue.Memory
        var codingPath: [any CodingKey] { [] }
        var allKeys: [Key] { SimplestValue.key(Key.self).map { [$0] } ?? [] }

        private var single: SimplestDecoder { SimplestDecoder(depth: depth, text: text, memory: memory) }

        func contains(_ key: Key) -> Bool { false }
        func decodeNil(forKey key: Key) -> Bool { true }
        func decode(_ type: String.Type, forKey key: Key) -> String { text }
        func decode<T: Decodable>(_ type: T.Type, forKey key: Key) throws -> T { try single.decode(type) }
        func nestedContainer<Nested: CodingKey>(
            keyedBy type: Nested.Type, forKey key: Key
        ) throws -> KeyedDecodingContainer<Nested> {
            KeyedDecodingContainer(Keyed<Nested>(depth: depth, text: text, memory: memory))
        }
        func nestedUnkeyedContainer(forKey key: Key) -> any UnkeyedDecodingContainer { EmptyList() }
        func superDecoder() -> any Decoder { single }
        func superDecoder(forKey key: Key) -> any Decoder { single }
    }
}

/// A list without elements.
struct EmptyList: UnkeyedDecodingContainer {
    var codingPath: [any CodingKey] { [] }
    var count: Int? { 0 }
    var isAtEnd: Bool { true }
    var currentIndex: Int { 0 }

    func decodeNil() -> Bool { true }
    func decode<T: Decodable>(_ type: T.Type) throws -> T { throw NothingThere() }
    func nestedContainer<Key: CodingKey>(keyedBy type: Key.Type) throws -> KeyedDecodingContainer<Key> {
        throw NothingThere()
    }
    func nestedUnkeyedContainer() throws -> any UnkeyedDecodingContainer { throw NothingThere() }
    func superDecoder() throws -> any Decoder { throw NothingThere() }
}
