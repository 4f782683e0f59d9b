/// A pattern of ASCII literals and whole segments with names of ASCII letters, read in one pass. Nearly all patterns
/// are of this kind.
struct PlainPattern {
    private(set) var segments: [PathSegment] = []
    /// The names of the groups.
    private(set) var names: [String] = []

    private static let slash = [PathScalars.separator]

    /// Reads a pattern. Returns `nil` for any other pattern, including invalid ones.
    ///
    /// - Parameters:
    ///   - start: The offset of the component in bytes. It extends to the end of `text`.
    ///   - delimiter: The delimiter, as in `PatternParser`. In a host, only a literal in lower case is plain.
    init?(_ text: String, from start: Int = 0, delimiter: UnicodeScalar) {
        let isPlain = text.withRawText { text in
            let text = text.part(start, text.count)
            return delimiter == "/" ? readPath(text) : readHost(text)
        }
        guard isPlain else { return nil }
    }

    private mutating func readHost(_ text: RawText) -> Bool {
        guard text.allSatisfy({ Self.isLiteral($0) && !(0x41...0x5A).contains($0) && $0 != 0x2F }) else { return false }
        segments = [.literal(Array(text))]
        return true
    }

    private mutating func readPath(_ text: RawText) -> Bool {
        segments.reserveCapacity(8)
        var start = 0
        while true {
            var end = start
            while end < text.count, text[end] != 0x2F { end += 1 }
            let segment = text.part(start, end)
            if start > 0, segment.first == 0x3A {
                let name = segment.part(1, segment.count)
                guard !name.isEmpty, name.allSatisfy({ (0x61...0x7A).contains($0 | 0x20) }) else { return false }
                guard addName(name.string) else { return false }
            } else {
                guard segment.allSatisfy(Self.isLiteral), !segment.isDots else { return false }
                segments.append(.literal(Array(segment)))
            }
            guard end < text.count else { return true }
            start = end + 1
        }
    }

    /// Adds a group. Returns false if there is already a group of that name, or if more groups would make a search too
    /// slow.
    private mutating func addName(_ name: String) -> Bool {
        guard names.count < RoutePattern.mostSegments, !names.contains(name) else { return false }
        names.append(name)
        segments.append(.name)
        return true
    }

    /// Returns the parts that `PatternParser` would return for the pattern.
    static func parts(_ segments: [PathSegment], _ names: [String]) -> [PatternPart] {
        var (parts, literal, names) = ([PatternPart](), [UInt32](), names[...])
        func endLiteral() {
            if literal.isEmpty { return }
            parts.append(
                PatternPart(matcher: .literal(literal), modifier: .once, name: "", prefix: [], suffix: []))
            literal = []
        }
        for (index, segment) in segments.enumerated() {
            if case .literal(let text) = segment {
                if index > 0 { literal += slash }
                literal += text.map(UInt32.init)
            } else {
                endLiteral()
                parts.append(
                    PatternPart(
                        matcher: .segment, modifier: .once, name: names.removeFirst(), prefix: slash, suffix: []))
            }
        }
        endLiteral()
        return parts
    }

    private static func isLiteral(_ byte: UInt8) -> Bool {
        byte < 0x80 && PatternParser.isLiteral(UInt32(byte))
    }
}

extension RawText {
    /// Whether this is `.` or `..`, which are never segments of a URL.
    fileprivate var isDots: Bool { count <= 2 && !isEmpty && allSatisfy { $0 == 0x2E } }
}
