import Foundation
import PluginABI
import Testing

@testable import TestSupport

@Suite struct ValueTests {
    // MARK: JSON

    @Test func `Scalars are written as JSON specifies`() {
        let cases: [(Value, String)] = [
            (nil, "null"), (true, "true"), (false, "false"), (0, "0"), (.int(.min), "-9223372036854775808"),
            (.int(.max), "9223372036854775807"), (0.5, "0.5"), (.double(2), "2.0"), (.double(.infinity), "\"inf\""),
            (.double(-.infinity), "\"-inf\""), (.double(.nan), "\"nan\""), ("", "\"\""),
        ]
        for (value, json) in cases { #expect(value.json == json) }
    }

    @Test func `JSON escapes quotes, backslashes and control characters, and nothing else`() {
        #expect(Value.string("a\"b\\c\n\r\t\u{0}\u{1F}\u{7F}").json == #""a\"b\\c\n\r\t\u0000\u001f\u007f""#)
        #expect(Value.string("né 漢 👩‍👩‍👧").json == "\"né 漢 👩‍👩‍👧\"")
    }

    /// `ESC ]` and `CSI` also have forms beyond ASCII; the marks change the direction of writing.
    @Test func `JSON for a terminal contains no control characters, and decodes to the same value`() throws {
        let controls = [0x80...0x9F, 0x61C...0x61C, 0x200E...0x200F, 0x2028...0x202E, 0x2066...0x2069].joined()
        for number in controls {
            let scalar = try #require(Unicode.Scalar(UInt32(number)))
            let digits = String(number, radix: 16)
            let escape = "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
            let json = Value.map(["k\(scalar)": .string("é\(scalar)x\(scalar)")]).json
            #expect(json == "{\"k\(escape)\":\"é\(escape)x\(escape)\"}")
            #expect(!json.unicodeScalars.contains { $0.isTerminalControl })
        }
        // Their neighbours are not escaped.
        let text = "\u{A0}\u{61B}\u{61D}\u{200D}\u{2010}\u{2027}\u{202F}\u{2065}\u{206A}"
        #expect(Value.string(text).json == "\"\(text)\"")
    }

    @Test func `Text for a message is on one line, shortened, and without control characters`() {
        #expect("a\u{1B}]0;x\u{7}\n\u{9B}2J\u{202E}\\".shortened == "a\\u{1b}]0;x\\u{7}\\n\\u{9b}2J\\u{202e}\\")
        #expect("é".shortened == "é")
        #expect(String(repeating: "x", count: 200).shortened == String(repeating: "x", count: 200))
        #expect(String(repeating: "x", count: 1 << 20).shortened == String(repeating: "x", count: 200) + "…")
        // A single character of one megabyte.
        #expect(("a" + String(repeating: "\u{300}", count: 1 << 20)).shortened.utf8.count < 1000)
        #expect("x\u{1B}".shortened.shortened == "x\u{1B}".shortened)
    }

    @Test func `JSON sorts keys and writes bytes in base64`() {
        let value: Value = ["b": [1, nil], "a": .bytes([1, 2, 3, 4]), "": [:]]
        #expect(value.json == #"{"":{},"a":"AQIDBA==","b":[1,null]}"#)
        #expect(value.description == value.json)
    }

    @Test func `Foundation reads the JSON of any value`() throws {
        var random = Random()
        for _ in 0..<200 {
            let json = Value.list([random.value(depth: 4)]).json
            #expect(throws: Never.self, "seed \(random.seed): \(json)") {
                try JSONSerialization.jsonObject(with: Data(json.utf8))
            }
        }
    }

    // MARK: Bytes

    @Test func `Base64 equals Foundation's for every length`() {
        var random = Random()
        for count in 0..<67 {
            let bytes = (0..<count).map { _ in UInt8.random(in: 0...255, using: &random) }
            #expect(Bytes(bytes).base64 == Data(bytes).base64EncodedString(), "seed \(random.seed)")
        }
    }

    @Test func `Bytes are equal by content and copied by reference`() {
        let bytes = Bytes([1, 2, 3])
        let copy = bytes
        #expect(bytes == Bytes([1, 2, 3]) && bytes != [1, 2] && bytes.hashValue == Bytes([1, 2, 3]).hashValue)
        let addresses = [bytes, copy].map { $0.withUnsafeBytes { UInt(bitPattern: $0.baseAddress) } }
        #expect(addresses[0] == addresses[1])
        #expect(Array(Bytes(count: 4) { $0[1] = 7 }) == [0, 7, 0, 0])
        #expect(Bytes([]).isEmpty && Bytes([]).base64 == "")
    }

    // MARK: Round trips over the boundary

    @Test func `Every value survives a round trip`() throws {
        var random = Random()
        for _ in 0..<500 {
            let value = random.value(depth: 5)
            #expect(try roundTrip(value) == value, "seed \(random.seed)")
        }
    }

    @Test func `Extreme values survive a round trip`() throws {
        let values: [Value] = [
            nil, .int(.min), .int(.max), .double(.infinity), .double(.leastNonzeroMagnitude), "", [], [:], ["": ""],
            .bytes([]), [[]], [[:]], "\u{0}", "👩‍👩‍👧é", .string(String(repeating: "漢", count: 1 << 20)),
            .bytes(Bytes(count: 1 << 20) { $0[9] = 1 }), .list(Array(repeating: 1, count: 100_000)),
        ]
        for value in values { #expect(try roundTrip(value) == value) }
        let nan = try roundTrip(.double(.nan))
        #expect(nan.double?.isNaN == true)
        let negativeZero = try roundTrip(.double(-0.0))
        #expect(negativeZero.double?.sign == .minus)
    }

    @Test(arguments: [0, 1, 127, 128]) func `Lists and maps can be nested 128 deep`(depth: Int) throws {
        #expect(try roundTrip(nest(depth) { [$0] }) == nest(depth) { [$0] })
        #expect(try roundTrip(nest(depth) { ["k": $0] }) == nest(depth) { ["k": $0] })
    }

    @Test(arguments: [129, 1000]) func `Lists and maps that are nested more than 128 deep are refused`(depth: Int) {
        for value in [nest(depth) { [$0] }, nest(depth) { ["k": $0] }] {
            let error = #expect(throws: PluginError.self) { try roundTrip(value) }
            #expect(error?.code == .invalidValue)
            let lent = #expect(throws: PluginError.self) { try value.lend { _ in } }
            #expect(lent?.code == .invalidValue)
        }
    }

    @Test func `Parameters keep their order and names, and an empty name means a position`() throws {
        let parameters: Parameters = ["b": 1, "a": 2, "": 3]
        let names = try parameters.lend { $0.map(\.key.text) }
        #expect(names == ["b", "a", ""])
        let positions: Parameters = [1, "two"]
        #expect(try positions.lend { $0.map(\.key.count) } == [0, 0])
        let none: Parameters = [:]
        #expect(try none.lend { $0.count } == 0)
    }

    @Test func `A literal of parameters mixes values, literals, variables, optionals and nil`() throws {
        enum Color: String, ValueConvertible { case red }
        struct Shape: ValueCodable { var sides = 3 }
        let (text, number, some, none, list) = ("a text", 5 as UInt8, 7 as Int?, String?.none, ["x", "y"])
        let value: Value = ["k": 1]
        let parameters: Parameters = [
            "ready": .string("r"), "null": .null, "literal": 1, "double": 2.5, "flag": true, "nil": nil,
            "variable": text, "expression": number * 2, "joined": "\(text)s", "some": some, "none": none,
            "value": value, "values": [1, "x", nil] as Value, "list": list, "numbers": [1, 2], "map": ["a": 1],
            "color": Color.red, "shape": Shape(), "bytes": Bytes([1]), "choice": list.isEmpty ? nil : list.count,
        ]
        let named = try parameters.lend { entries in
            Dictionary(
                entries.map { ($0.key.text, Value(copying: $0.value, host: noHost)) }, uniquingKeysWith: { $1 })
        }
        #expect(
            named == [
                "ready": "r", "null": nil, "literal": 1, "double": 2.5, "flag": true, "nil": nil, "variable": "a text",
                "expression": 10, "joined": "a texts", "some": 7, "none": nil, "value": ["k": 1],
                "values": [1, "x", nil], "list": ["x", "y"], "numbers": [1, 2], "map": ["a": 1], "color": "red",
                "shape": ["sides": 3], "bytes": .bytes([1]), "choice": 2,
            ])
        let plain: Parameters = [text, 1, 2.5, true, nil, value, some, none, .null]
        let positional = try plain.lend { $0.map { Value(copying: $0.value, host: noHost) } }
        #expect(positional == ["a text", 1, 2.5, true, nil, ["k": 1], 7, nil, nil])
    }

    /// Strings of up to 15 bytes that are stored in themselves are passed in another way than all others.
    @Test func `Names and texts of each length in a literal of parameters arrive as they are`() throws {
        for count in 1...40 {
            for letter in ["x", "é", "漢"] {
                let short = String(repeating: letter, count: count)
                var stored = ""
                stored.reserveCapacity(200)
                stored += short
                // The bit that short strings set is clear: the text is on the heap, although it may be short.
                #expect(unsafeBitCast(stored, to: (UInt64, UInt64).self).1 & 0x2000_0000_0000_0000 == 0)
                let named: Parameters = [
                    short: stored, "2": 1, "n\(stored)": short, stored: 2.5, "nil": nil, "": short,
                ]
                let expected: [(String, Value)] = [
                    (short, .string(short)), ("2", 1), ("n\(short)", .string(short)), (short, 2.5), ("nil", nil),
                    ("", .string(short)),
                ]
                let arrived = try named.lend { $0.map { ($0.key.text, Value(copying: $0.value, host: noHost)) } }
                #expect(arrived.elementsEqual(expected, by: ==))
                let positions: Parameters = [short, 1, stored, true, 2.5, nil, "", short]
                #expect(
                    try positions.lend { $0.map { Value(copying: $0.value, host: noHost) } }
                        == [.string(short), 1, .string(short), true, 2.5, nil, "", .string(short)])
                let mixed: Parameters = [stored: short, short: ["list"]]
                #expect(try mixed.lend { $0.map(\.key.text) } == [short, short])
            }
        }
    }

    @Test func `Lists and maps in a literal of parameters arrive as they are, with elements of every type`() throws {
        let long = String(repeating: "long ", count: 100)
        let cases: [(Parameters, Value)] = [
            ([["x", long]], ["x", .string(long)]), ([[1, -2]], [1, -2]), ([[true, false]], [true, false]),
            ([[2.5, 0]], [2.5, 0.0]), ([[Value.null, ["k": 1], .string(long)]], [nil, ["k": 1], .string(long)]),
            ([["a": "x", "b": long]], ["a": "x", "b": .string(long)]), ([["a": 1, "b": -2]], ["a": 1, "b": -2]),
            ([["a": true]], ["a": true]), ([["a": 2.5]], ["a": 2.5]),
            ([["a": Value.string(long), "b": 1]], ["a": .string(long), "b": 1]),
            ([[[1], [2, 3]]], [[1], [2, 3]]), ([["a": ["b": [long]]]], ["a": ["b": [.string(long)]]]),
            ([[] as [String]], []), ([[:] as [String: Int]], [:]),
        ]
        for (parameters, expected) in cases {
            let arrived = try parameters.lend { Value(copying: $0[0].value, host: noHost) }
            #expect(arrived == expected)
        }
        var deepest: Value = 1
        for _ in 0..<PLUGIN_DEPTH_MAX { deepest = [deepest] }
        #expect(try Parameters(positional: [deepest]).lend { $0.count } == 1)
        let tooDeep: Parameters = [[deepest]]
        let error = #expect(throws: PluginError.self) { try tooDeep.lend { $0.count } }
        #expect(error?.code == .invalidValue)
    }

    @Test func `A value that cannot be passed is named by the error of the call`() {
        let cases: [(Parameters, String)] = [(["big": UInt.max], "“big”"), ([1, UInt.max], "at position 2")]
        for (parameters, name) in cases {
            let error = #expect(throws: PluginError.self) { try parameters.lend { $0.count } }
            #expect(error?.code == .invalidValue)
            #expect(error?.message.hasPrefix("The parameter \(name) cannot be passed. The value is 18446744") == true)
        }
    }

    @Test func `Bytes in parameters are lent without a copy`() throws {
        let bytes = Bytes(count: 1 << 20) { _ in }
        let parameters: Parameters = ["data": .bytes(bytes)]
        let lent = try parameters.lend { UInt(bitPattern: $0[0].value.as.bytes) }
        #expect(lent == bytes.withUnsafeBytes { UInt(bitPattern: $0.baseAddress) })
    }

    @Test func `Of equal keys in a map from C, the last one counts`() {
        let entries = [
            plugin_entry(key: plugin_string("k"), value: plugin_value_int(1)),
            plugin_entry(key: plugin_string("k"), value: plugin_value_int(2)),
        ]
        entries.withUnsafeBufferPointer {
            #expect(Value(copying: plugin_value_map($0.baseAddress, 2), host: noHost) == ["k": 2])
        }
    }

    @Test func `A string with a null pointer reads as empty`() {
        #expect(plugin_string(bytes: nil, count: 5).text == "")
        #expect(plugin_string(bytes: nil, count: .max).text == "")
    }

    // MARK: Reading

    @Test func `Typed properties are nil for a value of another kind`() {
        let value: Value = 3
        #expect(value.int == 3 && value.double == 3 && value.string == nil && value.bool == nil && value.list == nil)
        #expect(Value.double(3).int == nil)
        #expect(Value.int((1 << 53) + 1).double == nil)
        #expect(value["a"] == nil && value[0] == nil)
        let list: Value = [1, ["a": 2]]
        #expect(list[1]?["a"] == 2 && list[2] == nil && list[-1] == nil)
    }

    @Test func `Numbers are converted to another kind only without loss`() throws {
        #expect(try Value.double(3).get(Int.self) == 3)
        #expect(try Value.int(3).get(Double.self) == 3)
        for (value, type) in [(Value.double(3.5), "Int"), (.double(.nan), "Int"), (.double(1e30), "Int")] {
            #expect(throws: PluginError.self, "\(type)") { try value.get(Int.self) }
        }
        #expect(throws: PluginError.self) { try Value.int((1 << 53) + 1).get(Double.self) }
        #expect(throws: PluginError.self) { try Value.int(300).get(Int8.self) }
        #expect(throws: PluginError.self) { try Value.int(-1).get(UInt.self) }
        #expect(throws: PluginError.self) { try UInt64.max.value }
        #expect(try Value.int(-128).get(Int8.self) == -128)
    }

    // MARK: -

    /// Only objects need a host, and these tests have none.
    private var noHost: UnsafePointer<plugin_host> { UnsafePointer(bitPattern: 16)! }

    private func roundTrip(_ value: Value) throws -> Value {
        let host = noHost
        var lent: Value?
        try value.lend { lent = Value(copying: $0, host: host) }
        let parameters = Parameters([("key", value)])
        let encoded = try parameters.lend {
            Value.list([.string($0[0].key.text), Value(copying: $0[0].value, host: host)])
        }
        if value == value { #expect(encoded == ["key", value] && lent == value) }
        return encoded[1]!
    }

    private func nest(_ depth: Int, _ wrap: (Value) -> Value) -> Value {
        (0..<depth).reduce(1) { value, _ in wrap(value) }
    }
}

/// Random values, reproducible from a seed.
struct Random: RandomNumberGenerator {
    let seed: UInt64
    private var numbers: SplitMix

    init(seed: UInt64 = .random(in: 0 ... .max)) { (self.seed, numbers) = (seed, SplitMix(seed: seed)) }

    mutating func next() -> UInt64 { numbers.next() }

    mutating func value(depth: Int) -> Value {
        switch Int.random(in: 0..<(depth > 0 ? 8 : 6), using: &self) {
        case 0: return .null
        case 1: return .bool(.random(using: &self))
        case 2: return .int(Int(truncatingIfNeeded: next()))
        case 3: return .double(Double(Int64(truncatingIfNeeded: next())) / 1024)
        case 4: return .string(text())
        case 5: return .bytes(Bytes((0..<count()).map { _ in UInt8(truncatingIfNeeded: next()) }))
        case 6: return .list((0..<count()).map { _ in value(depth: depth - 1) })
        default:
            return .map(
                Dictionary((0..<count()).map { _ in (text(), value(depth: depth - 1)) }, uniquingKeysWith: { $1 }))
        }
    }

    private mutating func count() -> Int { Int.random(in: 0..<6, using: &self) }

    private mutating func text() -> String {
        let letters = ["", "a", "\u{0}", "\"", "\\", "é", "漢", "👩‍👩‍👧", "e\u{301}", "\u{2028}"]
        return (0..<count()).map { _ in letters.randomElement(using: &self)! }.joined()
    }
}
