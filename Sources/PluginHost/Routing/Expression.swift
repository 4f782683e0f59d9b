/// A regular expression in the strict sense, which can be matched in linear time.
indirect enum Expression: Hashable, Sendable {
    case empty
    case scalars(ScalarSet)
    case concatenation([Expression])
    case alternation([Expression])
    case repetition(Expression, atLeast: Int, atMost: Int?, isLazy: Bool)
    /// `^` and `$`.
    case start, end
}
