/// The speed at which the machine runs, measured by loops that always do the same work.
public struct Reference: Sendable {
    /// A step of four independent chains of four multiplications each, in nanoseconds: it shows the clock of the
    /// processor, and how much of it another thread on the same core leaves.
    public let arithmetic: Double
    /// A read that misses the caches, in nanoseconds.
    public let memory: Double

    public init(arithmetic: Double, memory: Double) { (self.arithmetic, self.memory) = (arithmetic, memory) }

    /// Whether another measurement was made at the same speed. Other programs share the caches and the memory of the
    /// machine, so `memory` varies more.
    public func isClose(to other: Reference) -> Bool {
        let (arithmetic, memory) = (other.arithmetic / arithmetic, other.memory / memory)
        return (0.95...1.05).contains(arithmetic) && (0.7...1.4).contains(memory)
    }

    /// The value of `arithmetic` on the machine on which the goals in nanoseconds were set.
    public static let arithmeticOfGoals = 4.5
}
