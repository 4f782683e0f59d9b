import PluginABI

/// Reads the text of a ``VersionRange``, from left to right and once.
struct VersionRangeParser {
    typealias Comparator = VersionRange.Comparator

    /// A version of which the last numbers may be left out.
    private struct Partial {
        /// Those before the first that is left out.
        var numbers: [UInt64] = []
        /// With three numbers only.
        var prerelease: [String] = []

        /// Zeros in place of what is left out.
        var lowest: SemanticVersion {
            let all = numbers + [0, 0, 0]
            return SemanticVersion(all[0], all[1], all[2], prerelease: prerelease)
        }

        /// The first version after all that begin with the same numbers, `count` of them, before its own prereleases;
        /// nil where there is none, since numbers end somewhere.
        func next(after count: Int) -> SemanticVersion? {
            var next = Array(numbers.prefix(count))
            while let last = next.popLast() {
                guard last < .max else { continue }
                next += [last + 1, 0, 0]
                return SemanticVersion(next[0], next[1], next[2], prerelease: ["0"])
            }
            return nil
        }
    }

    private let text: String
    private let bytes: [UInt8]
    private var position = 0

    init(_ text: String) { (self.text, bytes) = (text, Array(text.utf8)) }

    /// The whole text.
    mutating func alternatives() throws(PluginError) -> [[Comparator]] {
        var alternatives = [try range()]
        while position < bytes.count {
            guard take("||") else { throw expected("||") }
            alternatives.append(try range())
        }
        return alternatives
    }

    /// Everything up to `||` or the end.
    private mutating func range() throws(PluginError) -> [Comparator] {
        skipSpaces()
        var comparators: [Comparator] = []
        var count = 0
        while position < bytes.count, bytes[position] != UInt8(ascii: "|") {
            let isFirst = count == 0
            let hasOperator = "<>=^~".utf8.contains(bytes[position])
            comparators += try hasOperator ? operation() : bare(canHaveHyphen: isFirst)
            count += 1
            let end = position
            skipSpaces()
            guard position > end || position == bytes.count || bytes[position] == UInt8(ascii: "|") else {
                throw expected("a space, or the end of the version")
            }
        }
        return comparators
    }

    /// `1.2`, or `1.2 - 1.4` and the end of the range.
    private mutating func bare(canHaveHyphen: Bool) throws(PluginError) -> [Comparator] {
        let first = try partial()
        let end = position
        skipSpaces()
        guard position > end, take("-") else {
            position = end
            return Self.equal(first)
        }
        guard canHaveHyphen else {
            position -= 1
            throw expected("|| or the end; a range with a hyphen stands alone")
        }
        let hyphen = position
        skipSpaces()
        guard position > hyphen else { throw expected("a space behind the hyphen") }
        let last = try partial()
        skipSpaces()
        guard position == bytes.count || bytes[position] == UInt8(ascii: "|") else {
            throw expected("|| or the end; a range with a hyphen stands alone")
        }
        return Self.atLeast(first) + Self.atMost(last)
    }

    private mutating func operation() throws(PluginError) -> [Comparator] {
        let name = ["<=", ">=", "<", ">", "=", "^", "~"].first { take($0) }
        skipSpaces()
        let version = try partial()
        return switch name {
        case "<=": Self.atMost(version)
        case ">=": Self.atLeast(version)
        case "<": [Comparator(relation: .less, version: Self.lower(version))]
        case ">": Self.above(version)
        case "^": Self.compatible(version)
        case "~": Self.from(version, upTo: version.next(after: min(2, version.numbers.count)))
        default: Self.equal(version)
        }
    }
}

// MARK: What the operators mean

extension VersionRangeParser {
    private static let nothing = [Comparator(relation: .less, version: SemanticVersion(0, 0, 0, prerelease: ["0"]))]

    private static func atLeast(_ version: Partial) -> [Comparator] {
        version.numbers.isEmpty ? [] : [Comparator(relation: .greaterOrEqual, version: version.lowest)]
    }

    private static func atMost(_ version: Partial) -> [Comparator] {
        switch version.numbers.count {
        case 3: [Comparator(relation: .lessOrEqual, version: version.lowest)]
        case let count: upTo(version.next(after: count))
        }
    }

    private static func above(_ version: Partial) -> [Comparator] {
        let count = version.numbers.count
        if count == 3 { return [Comparator(relation: .greater, version: version.lowest)] }
        guard count > 0, let next = version.next(after: count) else { return nothing }
        let release = SemanticVersion(next.major, next.minor, next.patch)
        return [Comparator(relation: .greaterOrEqual, version: release)]
    }

    /// What `<` compares with: versions before a release that is named in part are not below it.
    private static func lower(_ version: Partial) -> SemanticVersion {
        let lowest = version.lowest
        return version.numbers.count == 3
            ? lowest : SemanticVersion(lowest.major, lowest.minor, lowest.patch, prerelease: ["0"])
    }

    private static func equal(_ version: Partial) -> [Comparator] {
        version.numbers.count == 3
            ? [Comparator(relation: .equal, version: version.lowest)]
            : from(version, upTo: version.next(after: version.numbers.count))
    }

    /// Up to the next change of the first number that is not zero, or of the last that is there.
    private static func compatible(_ version: Partial) -> [Comparator] {
        let count = version.numbers.firstIndex { $0 != 0 }.map { $0 + 1 } ?? version.numbers.count
        return from(version, upTo: version.next(after: count))
    }

    private static func from(_ version: Partial, upTo next: SemanticVersion?) -> [Comparator] {
        atLeast(version) + upTo(next)
    }

    private static func upTo(_ next: SemanticVersion?) -> [Comparator] {
        next.map { [Comparator(relation: .less, version: $0)] } ?? []
    }
}

// MARK: Words

extension VersionRangeParser {
    private mutating func partial() throws(PluginError) -> Partial {
        var partial = Partial()
        var isCut = false
        for place in 0..<3 {
            if place > 0, !take(".") { return partial }
            if let letter = peek, "xX*".utf8.contains(letter) {
                position += 1
                isCut = true
            } else {
                guard !isCut else { throw expected("x or *, since what is before it is left open") }
                partial.numbers.append(try number())
            }
        }
        guard !isCut else { return partial }
        let start = position
        while let byte = peek, isWord(byte) || byte == UInt8(ascii: ".") || byte == UInt8(ascii: "+") { position += 1 }
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
        while let byte = peek, isDigit(byte) { position += 1 }
        let digits = bytes[start..<position]
        guard !digits.isEmpty else { throw expected("a number, x or *") }
        guard digits.count == 1 || digits.first != UInt8(ascii: "0") else {
            position = start
            throw expected("a number without zeros before it")
        }
        guard let number = UInt64(String(decoding: digits, as: UTF8.self)) else {
            position = start
            throw expected("a number below 2^64")
        }
        return number
    }

    private var peek: UInt8? { position < bytes.count ? bytes[position] : nil }

    private mutating func take(_ word: String) -> Bool {
        guard bytes[position...].starts(with: word.utf8) else { return false }
        position += word.utf8.count
        return true
    }

    private mutating func skipSpaces() { while let byte = peek, isSpace(byte) { position += 1 } }

    private func isSpace(_ byte: UInt8) -> Bool { byte == 0x20 || byte == 0x09 }
    private func isDigit(_ byte: UInt8) -> Bool { (0x30...0x39).contains(byte) }
    private func isWord(_ byte: UInt8) -> Bool {
        isDigit(byte) || (0x41...0x5A).contains(byte) || (0x61...0x7A).contains(byte) || byte == 0x2D
    }

    private func expected(_ what: String) -> PluginError {
        let found =
            switch String(decoding: bytes[position...], as: UTF8.self).unicodeScalars.first {
            case nil: "the text ends"
            case let scalar? where scalar.value < 0x20 || scalar.value == 0x7F: "there is a control character"
            case let scalar?: "there is '\(scalar)'"
            }
        return PluginError(
            .invalidValue,
            "The range of versions \"\(text.shortened)\" is wrong at character \(position + 1): \(found), where \(what) "
                + "is expected.")
    }
}
