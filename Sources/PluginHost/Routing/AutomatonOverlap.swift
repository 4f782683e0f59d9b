extension Automaton {
    /// Whether there is an input that two patterns both match.
    enum Overlap { case some, none, unknown }

    /// Runs two automata side by side, from the end of a common input to its beginning, since most patterns without a
    /// common input differ at their ends.
    ///
    /// - Parameter budget: How many steps may be taken. It is reduced by the steps that were taken.
    /// - Returns: Whether there is a common input; `unknown` if the budget is used up.
    func overlaps(_ other: Automaton, within budget: inout Int) -> Overlap {
        if sets.takesNothing, other.sets.takesNothing { return .some }
        var search = OverlapSearch(self, other)
        return search.run(&budget)
    }

    /// Returns the scalars that a position consumes.
    fileprivate func set(of position: Int) -> ScalarSet {
        if case .take(let set, _) = program[sets.instructions[position]] { set } else { ScalarSet([]) }
    }
}

/// A search that finds, for each position of one automaton, the positions of the other from which the end can be
/// reached with the same input.
private struct OverlapSearch {
    private let one: Automaton
    private let other: Automaton
    private let words: Int
    /// For each position of `one`, the positions of `other` that were found.
    private var found: [UInt64]
    /// For each position of `one`, the positions of `other` that were found but not yet followed.
    private var fresh: [UInt64]
    private var waiting: [Int] = []
    private var isWaiting: [Bool]
    /// The positions of the other automaton that consume some of the scalars of a set.
    private var compatible: [ScalarSet: [UInt64]] = [:]
    private var otherSets: [ScalarSet: [UInt64]] = [:]

    init(_ one: Automaton, _ other: Automaton) {
        (self.one, self.other, words) = (one, other, other.sets.words)
        found = Array(repeating: 0, count: one.sets.instructions.count * words)
        fresh = found
        isWaiting = Array(repeating: false, count: one.sets.instructions.count)
    }

    mutating func run(_ budget: inout Int) -> Automaton.Overlap {
        budget -= found.count + other.sets.instructions.count
        guard budget >= 0 else { return .unknown }
        for position in other.sets.instructions.indices {
            let none = [UInt64](repeating: 0, count: words)
            otherSets[other.set(of: position), default: none][position / 64] |= 1 << UInt64(position % 64)
        }
        for position in one.sets.instructions.indices where one.sets.last.hasBit(position) {
            if enter(other.sets.last, at: position, &budget) { return .some }
        }
        while budget >= 0, let position = waiting.popLast() {
            isWaiting[position] = false
            let state = Array(fresh[(position * words)..<((position + 1) * words)])
            for word in 0..<words { fresh[position * words + word] = 0 }
            budget -= one.sets.stepsPerScalar + other.sets.stepsPerScalar
            let others = other.sets.before(state)
            var here = [UInt64](repeating: 0, count: one.sets.words)
            here[position / 64] = 1 << UInt64(position % 64)
            for (word, bits) in one.sets.before(here).enumerated() {
                var bits = bits
                while bits != 0, budget >= 0 {
                    let earlier = word * 64 + bits.trailingZeroBitCount
                    bits &= bits - 1
                    if enter(others, at: earlier, &budget) { return .some }
                }
            }
        }
        return budget < 0 ? .unknown : .none
    }

    /// Adds positions of `other` to a position of `one`. Returns whether this completes a common input.
    private mutating func enter(_ others: [UInt64], at position: Int, _ budget: inout Int) -> Bool {
        budget -= words
        let compatible = compatible(with: one.set(of: position), &budget)
        let isFirst = one.sets.first.hasBit(position)
        for word in 0..<words {
            let index = position * words + word
            let new = others[word] & compatible[word] & ~found[index]
            guard new != 0 else { continue }
            found[index] |= new
            fresh[index] |= new
            if isFirst, new & other.sets.first[word] != 0 { return true }
            if !isWaiting[position] {
                isWaiting[position] = true
                waiting.append(position)
            }
        }
        return false
    }

    private mutating func compatible(with set: ScalarSet, _ budget: inout Int) -> [UInt64] {
        if let known = compatible[set] { return known }
        var bits = [UInt64](repeating: 0, count: words)
        for (otherSet, positions) in otherSets {
            budget -= set.ranges.count + otherSet.ranges.count
            guard budget >= 0, set.intersects(otherSet) else { continue }
            for word in 0..<words { bits[word] |= positions[word] }
        }
        compatible[set] = bits
        return bits
    }
}

extension [UInt64] {
    fileprivate func hasBit(_ bit: Int) -> Bool { self[bit / 64] & 1 << UInt64(bit % 64) != 0 }
}
