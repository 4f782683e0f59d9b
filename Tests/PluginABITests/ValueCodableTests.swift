import Foundation
import PluginABI
import Testing

@Suite struct ValueCodableTests {
    struct Inner: ValueCodable, Equatable {
        var name: String
        var scores: [Double]
    }

    struct Outer: ValueCodable, Equatable {
        var inner: Inner
        var inners: [Inner]
        var byName: [String: Inner]
        var missing: Int?
        var present: Int?
        var bytes: Bytes
        var any: Value
        var small: Int8
        var character: Suit
        var shape: Shape
        var date: Date
        var set: Set<Int>
        var byNumber: [Int: Bool]
        var nested: [[Int?]]
        var url: URL
    }

    enum Suit: String, ValueCodable { case hearts, spades }
    enum Size: Int, ValueCodable {
        case small = 1
        case large
    }
    enum Bare: String, ValueConvertible { case one }
    enum Shape: Codable, Equatable {
        case circle(radius: Double)
        case none
    }

    class Base: Codable {
        var a = 1
        init() {}
    }
    final class Derived: Base {
        var b = 2
        enum Keys: CodingKey { case b }
        override init() { super.init() }
        required init(from decoder: any Decoder) throws {
            let container = try decoder.container(keyedBy: Keys.self)
            b = try container.decode(Int.self, forKey: .b)
            try super.init(from: container.superDecoder())
        }
        override func encode(to encoder: any Encoder) throws {
            var container = encoder.container(keyedBy: Keys.self)
            try container.encode(b, forKey: .b)
            try super.encode(to: container.superEncoder())
        }
    }

    private var sample: Outer {
        let inner = Inner(name: "né", scores: [1, 2.5])
        return Outer(
            inner: inner, inners: [inner, inner], byName: ["x": inner, "": inner], missing: nil, present: 0,
            bytes: [1, 2], any: ["a": [nil]], small: -128, character: .spades, shape: .circle(radius: 0.5),
            date: Date(timeIntervalSinceReferenceDate: 1234.5), set: [1, 2, 3], byNumber: [1: true, -2: false],
            nested: [[1, nil], []], url: URL(string: "https://example.org/a?b=c")!)
    }

    @Test func `A structure with members of every kind survives a round trip`() throws {
        let value = try sample.value
        #expect(try Outer(value) == sample)
        #expect(value["bytes"] == .bytes([1, 2]) && value["any"] == ["a": [nil]] && value["missing"] == nil)
        #expect(value["inner"] == ["name": "né", "scores": [1.0, 2.5]])
        #expect(value["character"] == "spades")
    }

    @Test func `Enumerations are encoded as their raw values`() throws {
        #expect(try Suit.hearts.value == "hearts" && Suit("spades") == .spades)
        #expect(try Size.large.value == 2 && Size(.int(1)) == .small)
        #expect(try Bare.one.value == "one" && Bare("one") == .one)
        #expect(Suit.kind == .string && Size.kind == .int)
        let error = #expect(throws: PluginError.self) { try Suit("clubs") }
        #expect(error?.code == .mistypedParameter)
    }

    @Test func `Enumerations with payloads survive a round trip`() throws {
        for shape in [Shape.circle(radius: 2), .none] {
            #expect(try Value(encoding: shape).decode(Shape.self) == shape)
        }
    }

    @Test func `A subclass is encoded and decoded with its superclass`() throws {
        let derived = Derived()
        (derived.a, derived.b) = (5, 6)
        let value = try Value(encoding: derived)
        #expect(value == ["b": 6, "super": ["a": 5]])
        let back = try value.decode(Derived.self)
        #expect(back.a == 5 && back.b == 6)
    }

    @Test func `Scalars and lists can be encoded at the top level`() throws {
        #expect(try Value(encoding: 5) == 5 && Value(encoding: "a") == "a" && Value(encoding: [1]) == [1])
        #expect(try Value(encoding: Int?.none) == nil)
        #expect(try Value.null.decode(Int?.self) == nil)
    }

    @Test func `A number out of range is an error with its path, not a trap`() throws {
        var value = try #require(sample.value.map)
        value["small"] = 300
        let error = #expect(throws: PluginError.self) { try Outer(.map(value)) }
        #expect(error?.code == .mistypedParameter && error?.message.contains("small") == true)
        let encoding = #expect(throws: PluginError.self) { try Value(encoding: ["big": UInt64.max]) }
        #expect(encoding?.code == .invalidValue)
    }

    @Test func `A member that is missing or of the wrong kind is an error with its path`() throws {
        var value = try #require(sample.value.map)
        value["inner"] = ["name": "x"]
        let missing = #expect(throws: PluginError.self) { try Outer(.map(value)) }
        #expect(missing?.message.contains("scores") == true && missing?.message.contains("inner") == true)
        value["inner"] = 3
        let mistyped = #expect(throws: PluginError.self) { try Outer(.map(value)) }
        #expect(mistyped?.code == .mistypedParameter && mistyped?.message.contains("inner") == true)
        #expect(throws: PluginError.self) { try Value.list([1]).decode((Inner).self) }
    }

    @Test func `Values survive JSON`() throws {
        let value: Value = ["a": [1, 2.5, "x", nil, true], "b": [:]]
        let json = try JSONEncoder().encode(value)
        #expect(try JSONDecoder().decode(Value.self, from: json) == value)
    }

    @Test func `Bytes are encoded as base64 in other formats`() throws {
        let json = try JSONEncoder().encode(["b": Value.bytes([1, 2, 3])])
        #expect(String(decoding: json, as: UTF8.self) == #"{"b":"AQID"}"#)
    }

    @Test func `A structure without members is encoded as an empty map`() throws {
        struct Empty: ValueCodable {}
        #expect(try Empty().value == [:])
        _ = try Empty([:])
    }

    @Test func `Arrays and dictionaries of user-defined types can be parameters`() throws {
        let inners = [Inner(name: "a", scores: []), Inner(name: "b", scores: [1])]
        #expect(try [Inner](inners.value) == inners)
        #expect(try [String: Inner](["k": inners[0]].value) == ["k": inners[0]])
    }
}
