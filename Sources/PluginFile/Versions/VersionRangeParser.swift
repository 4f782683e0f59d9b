import PluginABI

/// Reads the text of a ``VersionRange`` in one pass from left to right.
struct VersionRangeParser {
    typealias Comparator = VersionRange.Comparator

    /// A version whose last numbers may be left out.
    private struct Partial {
        /// The numbers before the first one that is left out.
        var numbers: [UInt64] = []
        /// The prerelease; empty unless there are three numbers.
        var prerelease: [String] = []

        /// The lowest matching version: numbers that are left out are zero.
        var lowest: SemanticVersion {
            let all = numbers + [0, 0, 0]
            return SemanticVersion(all[0], all[1], all[2], prerelease: prerelease)
        }

        /// The lowest prerelease of ``lowest``.
        var beforeLowest: SemanticVersion {
            let (major, minor, patch) = lowest.release
            return SemanticVersion(major, minor, patch, prerelease: ["0"])
        }

        var isWhole: Bool { numbers.count == 3 }

        /// Returns the lowest version, prereleases included, above all versions that begin with the same `count`
        /// numbers; `nil` if there is none, because these numbers are already the largest possible ones.
        func next(after count: Int) -> SemanticVersion? {
            var next = Array(numbers.prefix(count))
            while let last = next.popLast() {
                guard last < .max else { continue }
                return Partial(numbers: next + [last + 1]).beforeLowest
            }
            return nil
        }
    }

    private let text: String
    private let bytes: [UInt8]
    private var position = 0

    init(_ text: String) { (self.text, bytes) = (text, Array(text.utf8)) }

    /// Reads the whole text.
    mutating func alternatives() throws(PluginError) -> [[Comparator]] {
        var alternatives = [try range()]
        while position < bytes.count {
            guard take("||") else { throw expected("||") }
            alternatives.append(try range())
        }
        return alternatives
    }

    /// Reads everything up to `||` or the end.
    private mutating func range() throws(PluginError) -> [Comparator] {
        skipSpaces()
        var comparators: [Comparator] = []
        var count = 0
        while !isAtEnd {
            let hasOperator = "<>=^~".utf8.contains(bytes[position])
            comparators += try hasOperator ? operation() : bare(canHaveHyphen: count == 0)
            count += 1
            let end = position
            skipSpaces()
            guard position > end || isAtEnd else { throw expected("a space, or the end of the version") }
        }
        return comparators
    }

    /// Reads `1.2`, or `1.2 - 1.4` followed by the end of the range.
    private mutating func bare(canHaveHyphen: Bool) throws(PluginError) -> [Comparator] {
        let first = try partial()
        let end = position
        skipSpaces()
        guard position > end, take("-") else {
            position = end
            return Self.equal(first)
        }
        let alone = "|| or the end, because a range with a hyphen stands alone"
        guard canHaveHyphen else {
            position -= 1
            throw expected(alone)
        }
        let hyphen = position
        skipSpaces()
        guard position > hyphen else { throw expected("a space after the hyphen") }
        let last = try partial()
        skipSpaces()
        guard isAtEnd else { throw expected(alone) }
        return Self.atLeast(first) + Self.atMost(last)
    }

    private mutating func operation() throws(PluginError) -> [Comparator] {
        let name = ["<=", ">=", "<", ">", "=", "^", "~"].first { take($0) }
        skipSpaces()
        let version = try partial()
        let count = version.numbers.count
        switch name {
        case "<=": return Self.atMost(version)
        case ">=": return Self.atLeast(version)
        case "<": return [Comparator(.less, version.isWhole ? version.lowest : version.beforeLowest)]
        case ">":
            if version.isWhole { return [Comparator(.greater, version.lowest)] }
            // No version is above the largest one, so nothing matches.
            guard count > 0, let (major, minor, patch) = version.next(after: count)?.release else {
                return [Comparator(.less, SemanticVersion(0, 0, 0, prerelease: ["0"]))]
            }
            return [Comparator(.greaterOrEqual, SemanticVersion(major, minor, patch))]
        case "^":
            // Up to the next change of the first number that is not zero or, if all are zero, of the last number.
            let change = version.numbers.firstIndex { $0 != 0 }.map { $0 + 1 } ?? count
            return Self.atLeast(version) + Self.below(version.next(after: change))
        case "~": return Self.atLeast(version) + Self.below(version.next(after: min(2, count)))
        default: return Self.equal(version)
        }
    }

    private static func atLeast(_ version: Partial) -> [Comparator] {
        version.numbers.isEmpty ? [] : [Comparator(.greaterOrEqual, version.lowest)]
    }

    private static func atMost(_ version: Partial) -> [Comparator] {
        version.isWhole
            ? [Comparator(.lessOrEqual, version.lowest)] : below(version.next(after: version.numbers.count))
    }

    private static func equal(_ version: Partial) -> [Comparator] {
        version.isWhole ? [Comparator(.equal, version.lowest)] : atLeast(version) + atMost(version)
    }

    private static func below(_ next: SemanticVersion?) -> [Comparator] {
        next.map { [Comparator(.less, $0)] } ?? []
    }
}

// MARK: Words

extension VersionRangeParser {
    private mutating func partial() throws(PluginError) -> Partial {
        var partial = Partial()
        var isCut = false
        for index in 0..<3 {
            if index > 0, !take(".") { return partial }
            if let letter = peek, "xX*".utf8.contains(letter) {
                position += 1
                isCut = true
            } else {
                guard !isCut else { throw expected("x or *, because the number before it is left open") }
                partial.numbers.append(try number())
            }
        }
        guard !isCut else { return partial }
        let start = position
        while let byte = peek, byte.isDigit || byte.isLetter || "-.+".utf8.contains(byte) { position += 1 }
        guard position > start else { return partial }
        let rest = String(decoding: bytes[start..<position], as: UTF8.self)
        guard let version = SemanticVersion("0.0.0" + rest) else {
            position = start
            throw expected("- and a prerelease, + and build metadata, or the end of the version")
        }
        partial.prerelease = version.prerelease
        return partial
    }

    private mutating func number() throws(PluginError) -> UInt64 {
        let start = position
        while peek?.isDigit == true { position += 1 }
        let digits = bytes[start..<position]
        guard !digits.isEmpty else { throw expected("a number, x or *") }
        let hasZeros = digits.count > 1 && digits.first == UInt8(ascii: "0")
        if !hasZeros, let number = UInt64(String(decoding: digits, as: UTF8.self)) { return number }
        position = start
        throw expected(hasZeros ? "a number without leading zeros" : "a number below 2^64")
    }

    /// Whether an alternative ends here.
    private var isAtEnd: Bool { peek == nil || peek == UInt8(ascii: "|") }

    private var peek: UInt8? { position < bytes.count ? bytes[position] : nil }

    private mutating func take(_ word: String) -> Bool {
        guard bytes[position...].starts(with: word.utf8) else { return false }
        position += word.utf8.count
        return true
    }

    private mutating func skipSpaces() { while peek == 0x20 || peek == 0x09 { position += 1 } }

    private func expected(_ what: String) -> PluginError {
        let found =
            switch String(decoding: bytes[position...], as: UTF8.self).unicodeScalars.first {
            case nil: "the text ends"
            case let scalar? where scalar.value < 0x20 || scalar.value == 0x7F: "there is a control character"
            case let scalar?: "there is '\(scalar)'"
            }
        return PluginError(
            .invalidValue,
            "The version range \"\(text.shortened)\" is not valid at character \(position + 1): expected \(what), but "
                + "\(found).")
    }
}
