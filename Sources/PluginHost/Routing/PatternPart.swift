/// A part of a pattern, as defined by the WHATWG URL Pattern standard.
struct PatternPart: Hashable, Sendable {
    /// The text that the part matches.
    enum Matcher: Hashable, Sendable {
        /// The scalars themselves.
        case literal([UInt32])
        /// A group that captures one segment or a part of one: `:name`.
        case segment
        /// A group that captures anything: `*`.
        case anything
        /// A group with an expression of its own: `(\d+)`.
        case expression(Expression)
    }

    /// How often the part may occur.
    enum Modifier: Hashable, Sendable {
        case once, optional, zeroOrMore, oneOrMore
    }

    var matcher: Matcher
    var modifier: Modifier
    /// The name of the group; empty for literals. Groups without a name are numbered from 0.
    var name: String
    /// The text before the group inside its braces, or the slash before it. It is repeated with the group.
    var prefix: [UInt32]
    /// The text after the group inside its braces. It is repeated with the group.
    var suffix: [UInt32]

    /// Whether this is a repeated group with nothing around it. It always takes part in a match, and captures nothing
    /// if it does not occur.
    var isBareRepetition: Bool {
        (modifier == .zeroOrMore || modifier == .oneOrMore) && prefix.isEmpty && suffix.isEmpty && !name.isEmpty
    }
}
