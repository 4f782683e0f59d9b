import PluginABI

/// Which versions will do: `^1.2`, `~1.2.3`, `>=1.0 <2.0 || 3.x`, `1.2 - 1.4`.
///
/// The grammar and its meaning are those of npm's node-semver, which most people know: comparators (`=`, `>`, `>=`, `<`,
/// `<=`), `^` (up to the next change of the first number that is not zero), `~` (up to the next minor version), numbers
/// that are left out or an `x`, `X` or `*`, ranges with a hyphen; a space means *and*, `||` means *or*. A version before
/// a release (`2.0.0-beta`) is in a range only if one of the comparators that it fulfils together names a version before
/// the same release. Nothing, and `*`, is every release. Stricter than node-semver: what stands behind an `x` is
/// refused, since it would mean nothing, and so are a `v` before a version and `~>`.
package struct VersionRange: Sendable, Hashable {
    /// As it was written.
    private let text: String
    /// One of these must hold, and in it every comparator.
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

        /// Whether it names a version before the release that the other one comes before.
        func isPrerelease(like other: SemanticVersion) -> Bool {
            !version.prerelease.isEmpty && version.release == other.release
        }
    }

    /// In bytes.
    private static let lengthLimit = 256

    /// Every release.
    static let any = VersionRange(text: "*", alternatives: [[]])

    private init(text: String, alternatives: [[Comparator]]) { (self.text, self.alternatives) = (text, alternatives) }

    /// - Throws: `invalidValue`, with the position of what is wrong and what was expected there.
    init(_ text: String) throws(PluginError) {
        let count = text.utf8.count
        guard count <= Self.lengthLimit else {
            throw PluginError(
                .invalidValue, "A range of versions is \(count) bytes long; at most \(Self.lengthLimit) are accepted.")
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
