internal import PluginABI

/// Values for calls, determined by a seed.
struct SeededValues {
    private var state: UInt64

    init(seed: UInt64) { state = seed }

    /// SplitMix64 (Steele, Lea, Flood: Fast Splittable Pseudorandom Number Generators).
    private mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var mixed = state
        mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
        return mixed ^ (mixed >> 31)
    }

    private mutating func pick<Element>(_ elements: [Element]) -> Element {
        elements[Int(next() % UInt64(elements.count))]
    }

    /// Returns a value as callers usually pass it.
    mutating func ordinary(_ kind: Value.Kind, object: Object) -> Value {
        switch kind {
        case .bool: .bool(next() & 1 == 0)
        case .int: .int(Int(next() % 50))
        case .double: .double(Double(next() % 1000) / 8)
        case .string: .string(pick(["apple", "a", "Grüße", "hello world", "42", "x-1"]))
        case .bytes: .bytes(Bytes((0..<next() % 64).map { UInt8($0) }))
        case .list: pick([[], [1, 2, 3], ["a", "b"]])
        case .map: pick([[:], ["key": "value"], ["n": 1, "list": [1]]])
        case .object: .object(object)
        case .any, .null: pick([nil, true, 7, 1.5, "text", [1], ["a": 1]])
        }
    }

    /// Returns an ordinary value that hardly ever occurs twice, if the type has enough values.
    mutating func varied(_ kind: Value.Kind, object: Object) -> Value {
        switch kind {
        case .string, .any: .string(name() + String(repeating: pick(["-", "é", "x"]), count: index(below: 300)))
        case .bytes: .bytes(Bytes((0..<next() % 300).map { UInt8(truncatingIfNeeded: $0 &* 7 &+ next()) }))
        case .list: .list((0..<next() % 9).map { _ in .int(Int(next() % 1_000)) })
        case .map: .map([name(): .int(Int(next() % 1_000)), "key": .string(name())])
        default: ordinary(kind, object: object)
        }
    }

    mutating func index(below count: Int) -> Int { Int(next() % UInt64(count)) }

    /// Returns an unusual value of a type.
    mutating func hostile(_ kind: Value.Kind, object: Object) -> Value {
        switch kind {
        case .bool: return .bool(next() & 1 == 0)
        case .int:
            return .int(pick([.min, .max, -1, 0, .max - 1, Int(Int32.max) + 1, Int(truncatingIfNeeded: next())]))
        case .double:
            return .double(
                pick([.nan, .infinity, -.infinity, -0.0, .greatestFiniteMagnitude, .leastNonzeroMagnitude, -1, 1e19]))
        case .string: return .string(hostileText())
        case .bytes: return .bytes(pick([Bytes([]), Bytes([0]), Bytes(repeatElement(0xFF, count: 1 << 16))]))
        case .list: return pick([[], nested(depth: 60), .list(Array(repeating: nil, count: 10_000)), [[], [:], ""]])
        case .map: return pick([[:], ["": nil], .map([hostileText(): nested(depth: 60)]), ["\u{0}": [:]]])
        case .object: return .object(object)
        case .any, .null:
            let kind = pick([Value.Kind.bool, .int, .double, .string, .bytes, .list, .map, .object])
            return next() % 8 == 0 ? .null : hostile(kind, object: object)
        }
    }

    private mutating func hostileText() -> String {
        pick([
            "", "\u{0}", "a\u{0}b", String(repeating: "x", count: 1 << 16), "%s%n%x", "../../../etc/passwd",
            "'; DROP--", "\u{202E}abc", "e\u{301}", "👩‍👩‍👧‍👦", "\n\r\t", "{\"a\":", "-9223372036854775809", "NaN",
            "\u{FFFD}\u{10FFFF}",
        ])
    }

    private func nested(depth: Int) -> Value { (0..<depth).reduce([]) { value, _ in [value] } }

    /// Returns a value of another type that cannot be converted without loss; `nil` if every value fits.
    mutating func mistyped(_ kind: Value.Kind) -> Value? {
        switch kind {
        case .bool, .bytes, .object: pick([7, "text", [1]])
        case .int: pick(["text", 1.5, true, [1], [:]])
        case .double: pick(["text", true, [1], [:]])
        case .string: pick([7, 1.5, true, [1]])
        case .list: pick([7, "text", [:]])
        case .map: pick([7, "text", []])
        case .any, .null: nil
        }
    }

    /// Returns a name that no module uses.
    mutating func name() -> String { "unknown" + String(next(), radix: 36) }
}
