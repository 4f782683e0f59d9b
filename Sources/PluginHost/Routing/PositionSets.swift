/// The positions of an automaton, which are its states that consume a scalar, as bits: one step simulates all of them.
/// (V. M. Glushkov's automaton; G. Navarro and M. Raffinot, "Flexible Pattern Matching in Strings", on bit-parallel
/// simulation.)
///
/// The input is read from its end, so that the state before each scalar contains exactly the positions from which the
/// end can be reached. These positions decide the captures of the groups.
struct PositionSets: Sendable {
    /// The instruction of each position, as an index in the program.
    private(set) var instructions: [Int] = []
    /// The position of each instruction; -1 if the instruction does not consume a scalar.
    private(set) var positions: [Int32] = []
    /// The number of words of 64 positions.
    private(set) var words = 1
    /// The positions that consume each class of scalars.
    private var classes = ScalarClasses()
    /// The positions that can follow the position with the next lower number.
    private var chained: [UInt64] = [0]
    /// The positions that can follow themselves.
    private var looped: [UInt64] = [0]
    /// The other transitions, for groups of positions that share their predecessors.
    private var joints: [Joint] = []
    private var jointWords: [UInt64] = []
    /// The positions that an input can begin with.
    private(set) var first: [UInt64] = [0]
    /// The positions that an input can end with.
    private(set) var last: [UInt64] = [0]
    private(set) var takesNothing = false
    /// The largest number of positions that can follow a position.
    private(set) var mostFollowing = 0
    /// The largest number of instructions that are followed between two scalars.
    private(set) var longestTransition = 0
    /// The number of instructions that are followed for all positions together.
    private(set) var transitions = 0
    /// The largest number of steps that a scalar of the input takes.
    private(set) var stepsPerScalar = 0

    private struct Joint {
        /// The words that contain the positions of this joint.
        let these: Range<Int>
        /// The words that contain the positions that lead to them.
        let earlier: Range<Int>
        /// The index in ``PositionSets/jointWords`` at which the words of both begin.
        let offset: Int
    }

    /// The most positions that a program may have. More would make a match too slow, whatever their transitions.
    static let mostPositions = 2_048
    /// The most instructions that are followed to create the sets.
    private static let mostTransitions = 500_000

    init() {}

    /// Creates the sets of a program.
    ///
    /// - Parameter isBounded: Whether a program that is too large is refused.
    /// - Returns: `nil` if the program is too large.
    init?(_ program: [Automaton.Instruction], isBounded: Bool) {
        positions = Array(repeating: -1, count: program.count)
        var sets: [ScalarSet] = []
        for (index, instruction) in program.enumerated() {
            guard case .take(let set, _) = instruction else { continue }
            positions[index] = Int32(instructions.count)
            instructions.append(index)
            sets.append(set)
        }
        if isBounded, instructions.count > Self.mostPositions { return nil }
        words = max(1, (instructions.count + 63) / 64)
        let none = [UInt64](repeating: 0, count: words)
        (chained, looped, first, last) = (none, none, none, none)
        classes = ScalarClasses(sets, words: words)

        var closure = Closure(program)
        closure.follow(from: 0, isStart: true)
        takesNothing = closure.accepts(isStart: true)
        for instruction in closure.takes { first.insert(Int(positions[instruction])) }
        (longestTransition, transitions, mostFollowing) = (closure.visited, closure.visited, closure.takes.count)
        var earlier = [[UInt64]](repeating: none, count: instructions.count)
        for (position, instruction) in instructions.enumerated() {
            guard case .take(_, let next) = program[instruction] else { continue }
            closure.follow(from: next, isStart: false)
            transitions += closure.visited
            if isBounded, transitions > Self.mostTransitions { return nil }
            longestTransition = max(longestTransition, closure.visited)
            mostFollowing = max(mostFollowing, closure.takes.count)
            if closure.accepts(isStart: false) { last.insert(position) }
            for instruction in closure.takes { earlier[Int(positions[instruction])].insert(position) }
        }
        divide(earlier)
        if words == 1 {
            stepsPerScalar = 4 + classes.steps + joints.count
        } else {
            let own = 4 + words * 3 + classes.steps
            stepsPerScalar = joints.reduce(own) { $0 + 2 + $1.these.count + $1.earlier.count }
        }
    }

    /// Divides the transitions by how they are followed: from the previous position, from the position itself, or from
    /// any.
    private mutating func divide(_ earlier: [[UInt64]]) {
        var shared: [[UInt64]: [UInt64]] = [:]
        var order: [[UInt64]] = []
        for (position, predecessors) in earlier.enumerated() {
            var predecessors = predecessors
            if position > 0, predecessors.remove(position - 1) { chained.insert(position) }
            if predecessors.remove(position) { looped.insert(position) }
            guard predecessors.contains(where: { $0 != 0 }) else { continue }
            if shared[predecessors] == nil { order.append(predecessors) }
            shared[predecessors, default: Array(repeating: 0, count: words)].insert(position)
        }
        for predecessors in order {
            let these = shared[predecessors]!
            let joint = Joint(these: these.used, earlier: predecessors.used, offset: jointWords.count)
            joints.append(joint)
            jointWords += these[joint.these] + predecessors[joint.earlier]
        }
    }

    /// Returns whether the whole input matches.
    ///
    /// - Parameters:
    ///   - kept: Receives, for each scalar of the input, the positions from which the end can be reached, in `words`
    ///     words each. The content is undefined if the input does not match.
    ///   - steps: Increased by the number of steps.
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
                    state &= masks.start[masks.offset(of: input[index])]
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
                    let mask = masks.start + masks.offset(of: input[index])
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

    /// Returns all positions that lead to those of a state.
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

    /// The range from the first to the last word that is not 0.
    fileprivate var used: Range<Int> {
        guard let first = firstIndex(where: { $0 != 0 }), let last = lastIndex(where: { $0 != 0 }) else { return 0..<0 }
        return first..<(last + 1)
    }
}
