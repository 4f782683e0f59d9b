/// A version as defined by Semantic Versioning 2.0: `1.2.3-beta.1+build`.
///
/// Build metadata is kept, but ignored in comparisons.
package struct SemanticVersion: Sendable {
    package let major: UInt64
    package let minor: UInt64
    package let patch: UInt64
    var release: (UInt64, UInt64, UInt64) { (major, minor, patch) }
    /// The identifiers after `-`. A version with such identifiers is lower than the same version without them.
    package let prerelease: [String]
    /// The identifiers after `+`.
    package let build: [String]

    package init(_ major: UInt64, _ minor: UInt64, _ patch: UInt64, prerelease: [String] = [], build: [String] = []) {
        (self.major, self.minor, self.patch, self.prerelease, self.build) = (major, minor, patch, prerelease, build)
    }

    /// The maximum length of a version in bytes, as in npm. No real version is that long.
    private static let mostBytes = 256

    /// Reads a version; `nil` if the text is not a semantic version.
    package init?(_ text: String) {
        guard text.utf8.count <= Self.mostBytes else { return nil }
        var rest = text[...]
        var build: [String]? = []
        var prerelease: [String]? = []
        if let plus = rest.firstIndex(of: "+") {
            build = Self.identifiers(rest[rest.index(after: plus)...], leadingZeros: true)
            rest = rest[..<plus]
        }
        if let dash = rest.firstIndex(of: "-") {
            prerelease = Self.identifiers(rest[rest.index(after: dash)...], leadingZeros: false)
            rest = rest[..<dash]
        }
        let parts = rest.split(separator: ".", omittingEmptySubsequences: false)
        let numbers = parts.compactMap(Self.number)
        guard let build, let prerelease, parts.count == 3, numbers.count == 3 else { return nil }
        (major, minor, patch) = (numbers[0], numbers[1], numbers[2])
        (self.prerelease, self.build) = (prerelease, build)
    }

    private static func isNumeric(_ text: some StringProtocol) -> Bool {
        !text.isEmpty && text.utf8.allSatisfy(\.isDigit)
    }

    private static func number(_ text: Substring) -> UInt64? {
        isNumeric(text) && (text.utf8.count == 1 || text.utf8.first != 0x30) ? UInt64(text) : nil
    }

    private static func identifiers(_ text: Substring, leadingZeros: Bool) -> [String]? {
        let parts = text.split(separator: ".", omittingEmptySubsequences: false)
        let areValid = parts.allSatisfy { part in
            !part.isEmpty && part.utf8.allSatisfy { $0.isDigit || $0.isLetter || $0 == UInt8(ascii: "-") }
                && (leadingZeros || !isNumeric(part) || part.utf8.count == 1 || part.utf8.first != 0x30)
        }
        return areValid ? parts.map(String.init) : nil
    }
}

extension SemanticVersion: Comparable, Hashable {
    package static func == (left: Self, right: Self) -> Bool {
        left.release == right.release && left.prerelease == right.prerelease
    }

    package func hash(into hasher: inout Hasher) {
        hasher.combine(major)
        hasher.combine(minor)
        hasher.combine(patch)
        hasher.combine(prerelease)
    }

    package static func < (left: Self, right: Self) -> Bool {
        if left.release != right.release { return left.release < right.release }
        guard !left.prerelease.isEmpty, !right.prerelease.isEmpty else {
            return !left.prerelease.isEmpty && right.prerelease.isEmpty
        }
        for (a, b) in zip(left.prerelease, right.prerelease) where a != b {
            let isNumber = isNumeric(a)
            guard isNumber == isNumeric(b) else { return isNumber }
            // Numbers have no leading zeros, so the longer one is larger. Words are in ASCII order.
            if isNumber, a.utf8.count != b.utf8.count { return a.utf8.count < b.utf8.count }
            return a.utf8.lexicographicallyPrecedes(b.utf8)
        }
        return left.prerelease.count < right.prerelease.count
    }
}

extension SemanticVersion: CustomStringConvertible {
    package var description: String {
        "\(major).\(minor).\(patch)" + (prerelease.isEmpty ? "" : "-" + prerelease.joined(separator: "."))
            + (build.isEmpty ? "" : "+" + build.joined(separator: "."))
    }
}
