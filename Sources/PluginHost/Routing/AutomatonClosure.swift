extension PositionSets {
    /// What is reached from a place of a program without taking anything.
    struct Closure {
        private let program: [Automaton.Instruction]
        private var marks: [Int]
        private var generation = 0
        private var stack: [(place: Int, saves: Bool)] = []
        /// The places that take something, in order of preference.
        private(set) var takes: [Int] = []
        /// Of each of these, whether a group begins or ends before it.
        private(set) var saves: [Bool] = []
        private var acceptsAtStart = false
        private var acceptsElsewhere = false
        /// How many places were looked at.
        private(set) var visited = 0

        init(_ program: [Automaton.Instruction]) {
            self.program = program
            marks = Array(repeating: 0, count: program.count)
        }

        /// Whether the end is reached, at the end of the input.
        func accepts(isStart: Bool) -> Bool { isStart ? acceptsAtStart : acceptsElsewhere }

        /// - Parameter isStart: Whether the input begins there.
        mutating func follow(from place: Int, isStart: Bool) {
            visited = 0
            acceptsAtStart = false
            acceptsElsewhere = false
            takes.removeAll(keepingCapacity: true)
            saves.removeAll(keepingCapacity: true)
            // Behind an end of the input nothing is taken, only accepted.
            if run(from: place, isStart: isStart, isEnd: false) {
                let count = takes.count
                _ = run(from: place, isStart: isStart, isEnd: true)
                takes.removeLast(takes.count - count)
                saves.removeLast(saves.count - count)
            }
        }

        /// Returns whether there is an end of the input on the way.

        private mutating func run(from place: Int, isStart: Bool, isEnd: Bool) -> Bool {
            var hasEnd = false
            generation += 1
            stack.append((place, false))
            while let (place, saved) = stack.popLast() {
                guard marks[place] != generation else { continue }
                marks[place] = generation
                visited += 1
                switch program[place] {
                case .jump(let target): stack.append((target, saved))
                case .split(let one, let other):
                    stack.append((other, saved))
                    stack.append((one, saved))
                case .save: stack.append((place + 1, true))
                case .start: if isStart { stack.append((place + 1, saved)) }
                case .end:
                    hasEnd = true
                    if isEnd { stack.append((place + 1, saved)) }
                case .take:
                    takes.append(place)
                    saves.append(saved)
                case .accept: if isStart { acceptsAtStart = true } else { acceptsElsewhere = true }
                case .fail: break
                }
            }
            return hasEnd
        }
    }
}
