extension Automaton {
    /// Returns whether the whole input matches.
    func accepts(_ input: UnsafeBufferPointer<UInt32>, counting steps: inout Int) -> Bool {
        sets.accepts(input, counting: &steps)
    }

    /// Matches the whole input. Returns the captures of the groups, with `nil` for a group that took no part in the
    /// match; or `nil` if the input does not match.
    func match(_ input: [UInt32]) -> [Range<Int>?]? {
        var steps = 0
        return input.withUnsafeBufferPointer { match($0, counting: &steps) }
    }

    /// Matches the whole input. Returns the captures of the groups, with `nil` for a group that took no part in the
    /// match; or `nil` if the input does not match.
    ///
    /// - Parameter steps: Increased by the number of steps taken, which are at most those of ``work``.
    func match(_ input: UnsafeBufferPointer<UInt32>, counting steps: inout Int) -> [Range<Int>?]? {
        guard sets.accepts(input, counting: &steps) else { return nil }
        if groupCount == 0 { return [] }
        return withUnsafeTemporaryAllocation(of: UInt64.self, capacity: max(1, input.count * sets.words)) { kept in
            _ = sets.accepts(input, keeping: kept.baseAddress, counting: &steps)
            var walk = Walk(self, groupCount)
            defer { steps += walk.steps }
            return walk.run(input.count, UnsafeBufferPointer(kept))
        }
    }

    /// A walk through a matching input from its beginning to its end, which always moves to the most preferred of
    /// the positions from which the end can be reached.
    private struct Walk {
        private let automaton: Automaton
        private var captures: [Int]
        private(set) var steps = 0
        /// The index in the input at which each instruction was last visited.
        private var marks: [Int]
        private var moves: [Move] = []
        /// The positions that may follow each position, in order of preference; `nil` if they are not computed yet.
        private var following: [[Following]?]
        private var closure: PositionSets.Closure

        private enum Move {
            case go(Int)
            /// Restores a capture when a path turns out to be a dead end.
            case restore(slot: Int, Int)
        }

        private struct Following {
            let position: Int32
            /// Whether a group begins or ends before the position.
            let saves: Bool
        }

        init(_ automaton: Automaton, _ groupCount: Int) {
            self.automaton = automaton
            captures = Array(repeating: -1, count: groupCount * 2)
            marks = Array(repeating: -1, count: automaton.program.count)
            following = Array(repeating: nil, count: automaton.sets.instructions.count + 1)
            closure = .init(automaton.program)
        }

        mutating func run(_ count: Int, _ kept: UnsafeBufferPointer<UInt64>) -> [Range<Int>?]? {
            let (instructions, words) = (automaton.sets.instructions, automaton.sets.words)
            var position = instructions.count  // Stands for the beginning of the input.
            for index in 0..<count {
                let next = next(behind: position, kept, index * words)
                guard let next else { return nil }
                if next.saves {
                    save(from: instruction(behind: position), to: instructions[Int(next.position)], index, count)
                }
                position = Int(next.position)
            }
            save(from: instruction(behind: position), to: nil, count, count)
            return stride(from: 0, to: captures.count, by: 2).map { slot in
                let (from, to) = (captures[slot], captures[slot + 1])
                return from >= 0 && to >= from ? from..<to : nil
            }
        }

        private func instruction(behind position: Int) -> Int {
            guard position < automaton.sets.instructions.count,
                case .take(_, let next) = automaton.program[automaton.sets.instructions[position]]
            else { return 0 }
            return next
        }

        @inline(__always)
        private mutating func next(
            behind position: Int, _ kept: UnsafeBufferPointer<UInt64>, _ start: Int
        ) -> Following? {
            if following[position] == nil { following[position] = findFollowing(position) }
            steps += SearchWork.move
            for following in following[position]! {
                steps += SearchWork.following
                let bit = Int(following.position)
                if kept[start + bit / 64] & 1 << UInt64(bit % 64) != 0 { return following }
            }
            return nil
        }

        private mutating func findFollowing(_ position: Int) -> [Following] {
            closure.follow(from: instruction(behind: position), isStart: position == automaton.sets.instructions.count)
            steps += closure.visited * SearchWork.instruction
            return zip(closure.takes, closure.saves).map {
                Following(position: automaton.sets.positions[$0], saves: $1)
            }
        }

        /// Records the groups that begin and end on the preferred path to the instruction that consumes the next
        /// scalar, or to the end of the pattern.
        private mutating func save(from start: Int, to target: Int?, _ index: Int, _ count: Int) {
            moves.removeAll(keepingCapacity: true)
            moves.append(.go(start))
            while let move = moves.popLast() {
                guard case .go(let instruction) = move else {
                    if case .restore(let slot, let old) = move { captures[slot] = old }
                    continue
                }
                guard marks[instruction] != index else { continue }
                marks[instruction] = index
                steps += SearchWork.instruction
                switch automaton.program[instruction] {
                case .jump(let target): moves.append(.go(target))
                case .split(let first, let second):
                    moves.append(.go(second))
                    moves.append(.go(first))
                case .save(let slot):
                    moves.append(.restore(slot: slot, captures[slot]))
                    captures[slot] = index
                    moves.append(.go(instruction + 1))
                case .start: if index == 0 { moves.append(.go(instruction + 1)) }
                case .end: if index == count { moves.append(.go(instruction + 1)) }
                case .take: if instruction == target { return }
                case .accept: if target == nil { return }
                case .fail: break
                }
            }
        }
    }
}
