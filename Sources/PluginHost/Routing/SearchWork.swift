/// How many steps finding the route of a URL may take at most, as it is known before any URL comes.
///
/// A step is about what one operation on a word of 64 states takes: up to half a nanosecond in a release build. `scripts/bench
/// matching` measures it. The sum over all that one URL can reach is bounded when routes are registered; then no URL
/// can take longer, whatever it is.
struct SearchWork: Equatable, Sendable {
    /// Whatever the length of the URL: nodes that are visited, names that are compared.
    var fixed = 0
    /// For each scalar of the URL: all automata that may have to be asked.
    var perScalar = 0
    /// For each scalar of the URL: the one automaton that is asked what the groups take, when the route is found.
    var walk = 0

    /// A node of the tree: it is most often not in the processor's cache.
    static let visit = 1_000
    /// An instruction of an automaton, on the way along which it is found out what groups take.
    static let instruction = 16
    /// A scalar on that way, and a position that may follow it.
    static let move = 20
    static let following = 4
    /// The length of URLs that the bound is meant for, which is the default of the program's setting; time grows in
    /// proportion where another one is set.
    static let scalars = 16_384
    /// How many steps a search may take. A URL is to be decided within 20 ms; see `Benchmarks/README.md` for what the slowest
    /// URLs of full tables take.
    static let most = 30_000_000

    /// Of the longest URL.
    var steps: Int { fixed + (perScalar + walk) * Self.scalars }

    /// One after the other.
    static func + (left: SearchWork, right: SearchWork) -> SearchWork {
        SearchWork(
            fixed: left.fixed + right.fixed, perScalar: left.perScalar + right.perScalar,
            walk: max(left.walk, right.walk))
    }

    static func += (left: inout SearchWork, right: SearchWork) { left = left + right }

    /// One or the other.
    func or(_ other: SearchWork) -> SearchWork {
        SearchWork(
            fixed: max(fixed, other.fixed), perScalar: max(perScalar, other.perScalar), walk: max(walk, other.walk))
    }
}
