/// A piece of a pattern, as the WHATWG URL Pattern standard divides it.
struct PatternPart: Hashable, Sendable {
    /// What the piece matches.
    enum Matcher: Hashable, Sendable {
        /// The scalars as they are.
        case literal([UInt32])
        /// A group that takes one segment, or a part of one: `:name`.
        case segment
        /// A group that takes anything: `*`.
        case anything
        /// A group with an expression of its own: `(\d+)`.
        case expression(Expression)
    }

    /// How often it may stand.
    enum Modifier: Hashable, Sendable {
        case once, optional, zeroOrMore, oneOrMore
    }

    var matcher: Matcher
    var modifier: Modifier
    /// The name of the group; empty for literals. Groups without one are numbered from 0.
    var name: String
    /// What stands before and behind the group, inside its braces (or the slash before it), and is repeated with it.
    var prefix: [UInt32]
    var suffix: [UInt32]

    /// A repeated group with nothing around it always takes part, and takes nothing where it stands no times.
    var isBareRepetition: Bool {
        (modifier == .zeroOrMore || modifier == .oneOrMore) && prefix.isEmpty && suffix.isEmpty && !name.isEmpty
    }
}
