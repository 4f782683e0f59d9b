/// Changes of a text that a reader of JSON, patterns or lines may not expect.
enum TextMutation {
    private static let pieces = [
        "[", "]", "{", "}", "\"", ",", ":", "\\", "\\u0000", "\\ud800", "null", "true", "-", "1e400", "-0",
        "99999999999999999999", "0.1e-400", "\u{0}", "\u{1B}]0;x\u{7}", "\u{202E}", "\u{85}", "é", "e\u{301}", "𝕏", "%",
        "%zz", "%00", "*", "(", ")", "(?:){1000}", "((a*)*)*", "[^", "{", "}", "?", "+", ":a(.*)", ">=", "||", "-1",
        "..",
        "/", "//", "app://", "native", "_url", "\n", "\r",
    ]

    static func mutate(_ text: [UInt8], _ random: inout SplitMix, most: Int = 4) -> [UInt8] {
        var bytes = text
        for _ in 0..<(1 + random.below(most)) {
            let place = random.below(bytes.count + 1)
            switch random.below(9) {
            case 0: bytes.insert(contentsOf: random.pick(pieces).utf8, at: place)
            case 1: bytes.insert(UInt8(random.below(256)), at: place)
            case 2:
                let end = min(bytes.count, place + random.below(16))
                bytes.removeSubrange(place..<end)
            case 3:
                let end = min(bytes.count, place + random.below(64))
                let copied = Array(bytes[place..<end])
                bytes.insert(contentsOf: copied, at: random.below(bytes.count + 1))
            case 4:
                let piece = Array(random.pick(pieces).utf8)
                let count = random.pick([100, 511, 512, 513, 514, 5_000])
                bytes.insert(contentsOf: Array(repeating: piece, count: count).joined(), at: place)
            case 5:
                // Replaces a value with another one.
                let marks = bytes.indices.filter { bytes[$0] == UInt8(ascii: ":") }
                guard let mark = marks.isEmpty ? nil : random.pick(marks) else { continue }
                let end =
                    bytes[mark...].firstIndex { $0 == UInt8(ascii: ",") || $0 == UInt8(ascii: "}") } ?? bytes.count
                bytes.replaceSubrange((mark + 1)..<max(mark + 1, end), with: random.pick(pieces).utf8)
            case 6 where !bytes.isEmpty: bytes[random.below(bytes.count)] ^= 1 << UInt8(random.below(8))
            default:
                let digits = bytes.indices.filter { (0x30...0x39).contains(bytes[$0]) }
                guard let digit = digits.isEmpty ? nil : random.pick(digits) else { continue }
                bytes.replaceSubrange(
                    digit...digit, with: random.pick(["1000", "-1", "65536", "9223372036854775808", "0", "1.5"]).utf8)
            }
        }
        return bytes
    }
}
