/// The states of an automaton that take a scalar, its positions, as bits: a step for all of them at once. (V. M. Glushkov's
/// automaton; G. Navarro and M. Raffinot, "Flexible Pattern Matching in Strings", on bit-parallel simulation.)
///
/// The input is read from its end: what is left at a place is then all positions from which the end can be reached, which
/// is what decides how the groups are taken.
struct PositionSets: Sendable {
    /// Of a position, its place in the program.
    private(set) var places: [Int] = []
    /// Of a place in the program, its position; -1 where it takes nothing.
    private(set) var positions: [Int32] = []
    /// Words of 64 positions.
    private(set) var words = 1
    /// What each class of scalars is taken by.
    private var classes = ScalarClasses()
    /// Positions that the one behind them leads back to when the input is read from its end, and those that lead to
    /// themselves.
    private var chained: [UInt64] = [0]
    private var looped: [UInt64] = [0]
    /// Other ways back: positions that share what leads to them.
    private var joints: [Joint] = []
    private var jointWords: [UInt64] = []
    /// Positions that an input can begin with, and end with.
    private(set) var first: [UInt64] = [0]
    private(set) var last: [UInt64] = [0]
    private(set) var takesNothing = false
    /// How many positions may follow another one at most.
    private(set) var mostFollowing = 0
    /// How many instructions lie between two scalars at most, and in all.
    private(set) var longestWay = 0
    private(set) var ways = 0
    /// How many steps each scalar of the input takes at most.
    private(set) var stepsPerScalar = 0

    private struct Joint {
        /// The words in which there are positions that this is about, and those that lead to them.
        let these: Range<Int>
        let earlier: Range<Int>
        /// Where the words of both begin.
        let offset: Int
    }

    /// More would make a match too slow, however they lead to each other.
    static let mostPositions = 2_048
    /// How many ways between instructions are followed when the sets are made.
    private static let mostWays = 500_000

    init() {}

    /// - Parameter isBounded: Whether a program that is too large is refused.
    /// - Returns: nil for a program that is.
    init?(_ program: [Automaton.Instruction], isBounded: Bool) {
        positions = Array(repeating: -1, count: program.count)
        var sets: [ScalarSet] = []
        for (place, instruction) in program.enumerated() {
            guard case .take(let set, _) = instruction else { continue }
            positions[place] = Int32(places.count)
            places.append(place)
            sets.append(set)
        }
        if isBounded, places.count > Self.mostPositions { return nil }
        words = max(1, (places.count + 63) / 64)
        let none = [UInt64](repeating: 0, count: words)
        (chained, looped, first, last) = (none, none, none, none)
        classes = ScalarClasses(sets, words: words)

        var closure = Closure(program)
        closure.follow(from: 0, isStart: true)
        takesNothing = closure.accepts(isStart: true)
        for place in closure.takes { first.insert(Int(positions[place])) }
        (longestWay, ways, mostFollowing) = (closure.visited, closure.visited, closure.takes.count)
        var earlier = [[UInt64]](repeating: none, count: places.count)
        for (position, place) in places.enumerated() {
            guard case .take(_, let next) = program[place] else { continue }
            closure.follow(from: next, isStart: false)
            ways += closure.visited
            if isBounded, ways > Self.mostWays { return nil }
            longestWay = max(longestWay, closure.visited)
            mostFollowing = max(mostFollowing, closure.takes.count)
            if closure.accepts(isStart: false) { last.insert(position) }
            for place in closure.takes { earlier[Int(positions[place])].insert(position) }
        }
        divide(earlier)
        if words == 1 {
            stepsPerScalar = 4 + classes.steps + joints.count
        } else {
            let own = 4 + words * 3 + classes.steps
            stepsPerScalar = joints.reduce(own) { $0 + 2 + $1.these.count + $1.earlier.count }
        }
    }

    /// Sorts the ways by how they are followed: to the position before, to itself, or to any.
    private mutating func divide(_ earlier: [[UInt64]]) {
        var shared: [[UInt64]: [UInt64]] = [:]
        var order: [[UInt64]] = []
        for (position, ways) in earlier.enumerated() {
            var ways = ways
            if position > 0, ways.remove(position - 1) { chained.insert(position) }
            if ways.remove(position) { looped.insert(position) }
            guard ways.contains(where: { $0 != 0 }) else { continue }
            if shared[ways] == nil { order.append(ways) }
            shared[ways, default: Array(repeating: 0, count: words)].insert(position)
        }
        for ways in order {
            let these = shared[ways]!
            let joint = Joint(these: these.used, earlier: ways.used, offset: jointWords.count)
            joints.append(joint)
            jointWords += these[joint.these] + ways[joint.earlier]
        }
    }
}

extension PositionSets {
    /// Whether the input is taken as a whole.
    ///
    /// - Parameters:
    ///   - kept: Where the positions from which the end is reached are written for each scalar of the input: `words` for
    ///     each. Undefined where the input is not taken.
    ///   - steps: Raised by the number of steps.
    func accepts(
        _ input: UnsafeBufferPointer<UInt32>, keeping kept: UnsafeMutablePointer<UInt64>? = nil,
        counting steps: inout Int
    ) -> Bool {
        guard !input.isEmpty else { return takesNothing }
        return words == 1 ? acceptsInOneWord(input, kept, &steps) : acceptsInWords(input, kept, &steps)
    }

    private func acceptsInOneWord(
        _ input: UnsafeBufferPointer<UInt32>, _ kept: UnsafeMutablePointer<UInt64>?, _ steps: inout Int
    ) -> Bool {
        let (chained, looped) = (chained[0], looped[0])
        return classes.withMasks { masks in
            jointWords.withUnsafeBufferPointer { joints in
                var state = last[0]
                var index = input.count
                defer { steps += (input.count - index) * stepsPerScalar }
                while true {
                    index &-= 1
                    state &= masks.start[masks.place(of: input[index])]
                    kept?[index] = state
                    if index == 0 || state == 0 { return index == 0 && state & first[0] != 0 }
                    var before = (state & chained) &>> 1 | state & looped
                    var joint = 0
                    while joint < joints.count {
                        if state & joints[joint] != 0 { before |= joints[joint &+ 1] }
                        joint &+= 2
                    }
                    state = before
                }
            }
        }
    }

    private func acceptsInWords(
        _ input: UnsafeBufferPointer<UInt32>, _ kept: UnsafeMutablePointer<UInt64>?, _ steps: inout Int
    ) -> Bool {
        withUnsafeTemporaryAllocation(of: UInt64.self, capacity: words * 2) { memory in
            classes.withMasks { masks in
                var index = input.count
                defer { steps += (input.count - index) * stepsPerScalar }
                var (state, before) = (memory.baseAddress!, memory.baseAddress! + words)
                for word in 0..<words { state[word] = last[word] }
                while true {
                    index &-= 1
                    let mask = masks.start + masks.place(of: input[index])
                    var any: UInt64 = 0
                    for word in 0..<words {
                        state[word] &= mask[word]
                        any |= state[word]
                    }
                    if let kept { (kept + index &* words).update(from: state, count: words) }
                    if any == 0 { return false }
                    if index == 0 { return (0..<words).contains { state[$0] & first[$0] != 0 } }
                    stepBack(state, before)
                    swap(&state, &before)
                }
            }
        }
    }

    /// All positions that lead to those of a state.
    func before(_ state: [UInt64]) -> [UInt64] {
        var state = state
        return [UInt64](unsafeUninitializedCapacity: words) { before, count in
            before.initialize(repeating: 0)
            state.withUnsafeMutableBufferPointer { stepBack($0.baseAddress!, before.baseAddress!) }
            count = words
        }
    }

    /// Writes all positions that lead to those of a state.
    @inline(__always)
    private func stepBack(_ state: UnsafeMutablePointer<UInt64>, _ before: UnsafeMutablePointer<UInt64>) {
        chained.withUnsafeBufferPointer { chained in
            looped.withUnsafeBufferPointer { looped in
                var carried: UInt64 = 0
                for word in (0..<words).reversed() {
                    let moved = state[word] & chained[word]
                    before[word] = moved &>> 1 | carried | state[word] & looped[word]
                    carried = moved &<< 63
                }
            }
        }
        jointWords.withUnsafeBufferPointer { bits in
            joints.withUnsafeBufferPointer { joints in
                for joint in joints {
                    var offset = joint.offset
                    var any: UInt64 = 0
                    for word in joint.these {
                        any |= state[word] & bits[offset]
                        offset &+= 1
                    }
                    guard any != 0 else { continue }
                    for word in joint.earlier {
                        before[word] |= bits[offset]
                        offset &+= 1
                    }
                }
            }
        }
    }
}

extension [UInt64] {
    fileprivate mutating func insert(_ bit: Int) { self[bit / 64] |= 1 << UInt64(bit % 64) }

    fileprivate mutating func remove(_ bit: Int) -> Bool {
        defer { self[bit / 64] &= ~(1 << UInt64(bit % 64)) }
        return self[bit / 64] & 1 << UInt64(bit % 64) != 0
    }

    /// The words that are not 0, and those between them.
    fileprivate var used: Range<Int> {
        guard let first = firstIndex(where: { $0 != 0 }), let last = lastIndex(where: { $0 != 0 }) else { return 0..<0 }
        return first..<(last + 1)
    }
}
