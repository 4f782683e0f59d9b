extension PositionSets {
    /// The instructions that are reached from an instruction of a program without consuming a scalar.
    struct Closure {
        private let program: [Automaton.Instruction]
        private var marks: [Int]
        private var generation = 0
        private var stack: [(instruction: Int, saves: Bool)] = []
        /// The reached instructions that consume a scalar, in order of preference.
        private(set) var takes: [Int] = []
        /// Whether a group begins or ends before each of the instructions in ``takes``.
        private(set) var saves: [Bool] = []
        private var acceptsAtStart = false
        private var acceptsElsewhere = false
        /// The number of instructions that were visited.
        private(set) var visited = 0

        init(_ program: [Automaton.Instruction]) {
            self.program = program
            marks = Array(repeating: 0, count: program.count)
        }

        /// Returns whether the end of the pattern is reached at the end of the input.
        func accepts(isStart: Bool) -> Bool { isStart ? acceptsAtStart : acceptsElsewhere }

        /// Finds all instructions that are reached from an instruction.
        ///
        /// - Parameter isStart: Whether this is the beginning of the input.
        mutating func follow(from instruction: Int, isStart: Bool) {
            visited = 0
            acceptsAtStart = false
            acceptsElsewhere = false
            takes.removeAll(keepingCapacity: true)
            saves.removeAll(keepingCapacity: true)
            // After an instruction that requires the end of the input, no scalar can be consumed.
            if run(from: instruction, isStart: isStart, isEnd: false) {
                let count = takes.count
                _ = run(from: instruction, isStart: isStart, isEnd: true)
                takes.removeLast(takes.count - count)
                saves.removeLast(saves.count - count)
            }
        }

        /// Visits the instructions. Returns whether one of them requires the end of the input.
        private mutating func run(from instruction: Int, isStart: Bool, isEnd: Bool) -> Bool {
            var hasEnd = false
            generation += 1
            stack.append((instruction, false))
            while let (instruction, saved) = stack.popLast() {
                guard marks[instruction] != generation else { continue }
                marks[instruction] = generation
                visited += 1
                switch program[instruction] {
                case .jump(let target): stack.append((target, saved))
                case .split(let one, let other):
                    stack.append((other, saved))
                    stack.append((one, saved))
                case .save: stack.append((instruction + 1, true))
                case .start: if isStart { stack.append((instruction + 1, saved)) }
                case .end:
                    hasEnd = true
                    if isEnd { stack.append((instruction + 1, saved)) }
                case .take:
                    takes.append(instruction)
                    saves.append(saved)
                case .accept: if isStart { acceptsAtStart = true } else { acceptsElsewhere = true }
                case .fail: break
                }
            }
            return hasEnd
        }
    }
}
