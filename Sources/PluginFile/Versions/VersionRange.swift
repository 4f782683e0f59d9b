import PluginABI

/// A range of acceptable versions: `^1.2`, `~1.2.3`, `>=1.0 <2.0 || 3.x`, `1.2 - 1.4`.
///
/// The grammar and its meaning are those of npm's node-semver, which is widely known: comparators (`=`, `>`, `>=`, `<`,
/// `<=`), `^` (up to the next change of the first number that is not zero), `~` (up to the next minor version), numbers
/// that are left out or written `x`, `X` or `*`, ranges with a hyphen; a space means *and*, `||` means *or*. A
/// prerelease (`2.0.0-beta`) is in a range only if one of the comparators of the matching alternative names a
/// prerelease of the same release. An empty text and `*` mean every release. Unlike node-semver, this type refuses
/// numbers after an `x`, which would have no meaning; a `v` before a version; and `~>`.
package struct VersionRange: Sendable, Hashable {
    /// The range as it was written.
    private let text: String
    /// The alternatives. A version is in the range if it meets all comparators of one of them.
    private let alternatives: [[Comparator]]

    struct Comparator: Sendable, Hashable {
        enum Relation: Sendable { case less, lessOrEqual, equal, greaterOrEqual, greater }

        let relation: Relation
        let version: SemanticVersion

        init(_ relation: Relation, _ version: SemanticVersion) { (self.relation, self.version) = (relation, version) }

        func holds(for other: SemanticVersion) -> Bool {
            switch relation {
            case .less: other < version
            case .lessOrEqual: other <= version
            case .equal: other == version
            case .greaterOrEqual: other >= version
            case .greater: other > version
            }
        }

        /// Returns whether the comparator's version is a prerelease of the same release as `other`.
        func isPrerelease(like other: SemanticVersion) -> Bool {
            !version.prerelease.isEmpty && version.release == other.release
        }
    }

    /// The maximum length in bytes.
    private static let lengthLimit = 256

    /// The range of all releases.
    static let any = VersionRange(text: "*", alternatives: [[]])

    private init(text: String, alternatives: [[Comparator]]) { (self.text, self.alternatives) = (text, alternatives) }

    /// Reads a range.
    ///
    /// - Throws: `invalidValue`, with the position of the mistake and what was expected there.
    init(_ text: String) throws(PluginError) {
        let count = text.utf8.count
        guard count <= Self.lengthLimit else {
            throw PluginError(
                .invalidValue, "A version range is \(count) bytes long; at most \(Self.lengthLimit) are accepted.")
        }
        var parser = VersionRangeParser(text)
        self.init(text: text, alternatives: try parser.alternatives())
    }

    package func contains(_ version: SemanticVersion) -> Bool {
        alternatives.contains { comparators in
            comparators.allSatisfy { $0.holds(for: version) }
                && (version.prerelease.isEmpty || comparators.contains { $0.isPrerelease(like: version) })
        }
    }
}

extension VersionRange: CustomStringConvertible {
    package var description: String { text.allSatisfy { $0 == " " } ? "*" : text }
}
