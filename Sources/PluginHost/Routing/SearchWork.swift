/// The most steps that finding the route of a URL can take, computed when routes are registered.
///
/// A step takes about as long as one operation on a word of 64 states: up to half a nanosecond in a release build.
/// `scripts/bench matching` measures it. The sum over everything that one URL can reach is limited when routes are
/// registered, so that no URL takes longer, whatever its text.
struct SearchWork: Equatable, Sendable {
    /// The steps that do not depend on the length of the URL: nodes that are visited, names that are compared.
    var fixed = 0
    /// The steps for each scalar of the URL in all automata that a search may run.
    var perScalar = 0
    /// The steps for each scalar of the URL in the one automaton that finds the captures of the route that is found.
    var walk = 0

    /// The steps for a node of the tree, which is mostly not in the processor's cache.
    static let visit = 1_000
    /// The steps for an instruction of an automaton during a walk, which finds the captures.
    static let instruction = 16
    /// The steps for a scalar during a walk.
    static let move = 20
    /// The steps for a position that may follow a scalar during a walk.
    static let following = 4
    /// The length of URLs for which the limit is meant: the default of ``HostConfiguration/maximumURLLength``. With
    /// another setting, the time changes in proportion.
    static let scalars = 16_384
    /// How many steps a search may take. The route of a URL must be decided within 20 ms; see `Benchmarks/README.md`
    /// for the times of the slowest URLs of full tables.
    static let most = 30_000_000

    /// The steps for the longest URL.
    var steps: Int { fixed + (perScalar + walk) * Self.scalars }

    /// Returns the work of two searches, one after the other.
    static func + (left: SearchWork, right: SearchWork) -> SearchWork {
        SearchWork(
            fixed: left.fixed + right.fixed, perScalar: left.perScalar + right.perScalar,
            walk: max(left.walk, right.walk))
    }

    static func += (left: inout SearchWork, right: SearchWork) { left = left + right }

    /// Returns the work of one of two searches.
    func or(_ other: SearchWork) -> SearchWork {
        SearchWork(
            fixed: max(fixed, other.fixed), perScalar: max(perScalar, other.perScalar), walk: max(walk, other.walk))
    }
}
