import PluginABI

/// A pattern as a nondeterministic automaton, run for all its states at once: time grows with the length of the input
/// times the size of the pattern, never faster. What the groups take is what JavaScript's backtracking would give them:
/// threads are kept in order of preference. (R. Cox, "Regular Expression Matching: the Virtual Machine Approach".)
struct Automaton: Sendable {
    fileprivate enum Instruction {
        case take(ScalarSet)
        /// Goes on at both places, at the first one by preference.
        case split(Int, Int)
        case jump(Int)
        case save(Int)
        /// Goes on only if the group of this slot has taken something: JavaScript leaves an optional group out rather
        /// than let it take nothing.
        case progress(Int)
        case start, end
        case accept
    }

    private var program: [Instruction] = []
    /// How many groups there are; each has two places in a thread's captures.
    private let groupCount: Int
    private let largest: Int

    /// Patterns that would become larger are refused: time and memory of a match are bounded by this.
    static let largest = 10_000

    /// - Throws: `invalidPattern` for a pattern that is too large.
    init(_ parts: [PatternPart], delimiter: UInt32?, of pattern: String) throws(PluginError) {
        groupCount = parts.count { !$0.name.isEmpty }
        largest = Self.largest
        try emit(parts, delimiter, pattern)
    }

    /// For parts without expressions, or of a pattern that is known not to be too large.
    init(bounded parts: [PatternPart], delimiter: UInt32?) {
        groupCount = parts.count { !$0.name.isEmpty }
        largest = .max
        try? emit(parts, delimiter, "")  // Throws only what is too large.
    }

    // MARK: Building

    private mutating func emit(
        _ parts: [PatternPart], _ delimiter: UInt32?, _ pattern: String
    ) throws(PluginError) {
        var group = 0
        for part in parts {
            let number = part.name.isEmpty ? nil : group
            if number != nil { group += 1 }
            try emit(part, number, delimiter, pattern)
        }
        try append(.accept, pattern)
    }

    private mutating func append(_ instruction: Instruction, _ pattern: String) throws(PluginError) {
        guard program.count < largest else {
            throw PluginError(
                .invalidPattern,
                "The pattern “\(pattern.shortened)” is too large: it would take more than "
                    + "\(Self.largest) steps. Repeat less.")
        }
        program.append(instruction)
    }

    private mutating func emit(
        _ part: PatternPart, _ group: Int?, _ delimiter: UInt32?, _ pattern: String
    ) throws(PluginError) {
        let expression: Expression =
            switch part.matcher {
            case .literal(let scalars): .literal(scalars)
            case .anything: .repetition(.scalars(.all), atLeast: 0, atMost: nil, isLazy: false)
            case .expression(let expression): expression
            case .segment:
                .repetition(
                    .scalars(delimiter.map { ScalarSet.scalar($0).inverted } ?? .all), atLeast: 1, atMost: nil,
                    isLazy: true)
            }
        guard let group else {
            try emit(.repeated(expression, part.modifier), pattern)
            return
        }
        if part.isBareRepetition {
            try append(.save(group * 2), pattern)
            try emit(.repeated(expression, part.modifier), pattern)
            try append(.save(group * 2 + 1), pattern)
            return
        }
        let isRepeated = part.modifier == .zeroOrMore || part.modifier == .oneOrMore
        // (?:prefix(value(?:suffix prefix value)*)suffix), as a whole perhaps optional.
        let skip = program.count
        let mayBeMissing = part.modifier == .optional || part.modifier == .zeroOrMore
        if mayBeMissing { try append(.accept, pattern) }  // Becomes the split, when its end is known.
        try emit(.literal(part.prefix), pattern)
        try append(.save(group * 2), pattern)
        try emit(expression, pattern)
        if isRepeated {
            let again = Expression.concatenation([.literal(part.suffix), .literal(part.prefix), expression])
            try emit(.repetition(again, atLeast: 0, atMost: nil, isLazy: false), pattern)
        }
        try append(.save(group * 2 + 1), pattern)
        if mayBeMissing, part.prefix.isEmpty, part.suffix.isEmpty { try append(.progress(group * 2), pattern) }
        try emit(.literal(part.suffix), pattern)
        if mayBeMissing { program[skip] = .split(skip + 1, program.count) }
    }

    private mutating func emit(_ expression: Expression, _ pattern: String) throws(PluginError) {
        switch expression {
        case .empty: break
        case .start: try append(.start, pattern)
        case .end: try append(.end, pattern)
        case .scalars(let set): try append(.take(set), pattern)
        case .concatenation(let pieces): for piece in pieces { try emit(piece, pattern) }
        case .alternation(let choices):
            var jumps: [Int] = []
            for (index, choice) in choices.enumerated() {
                let split = program.count
                if index < choices.count - 1 { try append(.accept, pattern) }
                try emit(choice, pattern)
                if index < choices.count - 1 {
                    jumps.append(program.count)
                    try append(.accept, pattern)
                    program[split] = .split(split + 1, program.count)
                }
            }
            for jump in jumps { program[jump] = .jump(program.count) }
        case .repetition(let repeated, let atLeast, let atMost, let isLazy):
            for _ in 0..<atLeast { try emit(repeated, pattern) }
            if let atMost {
                var splits: [Int] = []
                for _ in atLeast..<max(atLeast, atMost) {
                    splits.append(program.count)
                    try append(.accept, pattern)
                    try emit(repeated, pattern)
                }
                for split in splits { program[split] = .choice(split + 1, program.count, isLazy) }
            } else {
                let split = program.count
                try append(.accept, pattern)
                try emit(repeated, pattern)
                try append(.jump(split), pattern)
                program[split] = .choice(split + 1, program.count, isLazy)
            }
        }
    }

    // MARK: Running

    /// The threads of one position of the input: where each stands, by preference, and what its groups have taken.
    private struct Threads {
        var places: [Int] = []
        var captures: [[Int]] = []
        private var mark: [Int]
        private var generation = 0
        private(set) var steps = 0

        init(size: Int) { mark = Array(repeating: 0, count: size) }

        mutating func clear() {
            places.removeAll(keepingCapacity: true)
            captures.removeAll(keepingCapacity: true)
            generation += 1
        }

        /// Whether the place is new at this position.
        mutating func enter(_ place: Int) -> Bool {
            if mark[place] == generation + 1 { return false }
            mark[place] = generation + 1
            steps += 1
            return true
        }
    }

    /// How many instructions there are: no position of the input takes more steps.
    var size: Int { program.count }

    /// Matches the whole input. Returns what each group has taken, nil for one that took no part; nil for no match.
    func match(_ input: ArraySlice<UInt32>) -> [Range<Int>?]? {
        var steps = 0
        return match(input, counting: &steps)
    }

    /// - Parameter steps: Raised by the number of instructions that were run.
    func match(_ input: ArraySlice<UInt32>, counting steps: inout Int) -> [Range<Int>?]? {
        var now = Threads(size: program.count)
        var then = Threads(size: program.count)
        defer { steps += now.steps + then.steps }
        now.clear()
        add(0, Array(repeating: -1, count: groupCount * 2), input.startIndex, input, &now)
        for position in input.indices {
            if now.places.isEmpty { return nil }
            then.clear()
            for (thread, place) in now.places.enumerated() {
                if case .take(let set) = program[place], set.contains(input[position]) {
                    add(place + 1, now.captures[thread], position + 1, input, &then)
                }
            }
            swap(&now, &then)
        }
        for (thread, place) in now.places.enumerated() {
            guard case .accept = program[place] else { continue }
            let captures = now.captures[thread]
            return (0..<groupCount).map { group in
                let (from, to) = (captures[group * 2], captures[group * 2 + 1])
                return from >= 0 && to >= from ? from..<to : nil
            }
        }
        return nil
    }

    /// Adds a thread and all that it reaches without taking input, in order of preference.
    private func add(
        _ start: Int, _ captures: [Int], _ position: Int, _ input: ArraySlice<UInt32>, _ threads: inout Threads
    ) {
        var stack = [(start, captures)]
        while let (place, captures) = stack.popLast() {
            if case .progress(let slot) = program[place], captures[slot] == position { continue }
            guard threads.enter(place) else { continue }
            switch program[place] {
            case .jump(let target): stack.append((target, captures))
            case .split(let first, let second):
                stack.append((second, captures))
                stack.append((first, captures))
            case .save(let slot):
                var saved = captures
                saved[slot] = position
                stack.append((place + 1, saved))
            case .progress: stack.append((place + 1, captures))
            case .start: if position == input.startIndex { stack.append((place + 1, captures)) }
            case .end: if position == input.endIndex { stack.append((place + 1, captures)) }
            case .take, .accept:
                threads.places.append(place)
                threads.captures.append(captures)
            }
        }
    }
}

extension Automaton {
    /// Whether there is an input that both match: the automata are run side by side, over the places that both can
    /// reach.
    func intersects(_ other: Automaton) -> Bool {
        struct Pair: Hashable { let one, other: Int }
        var seen: Set<Pair> = []
        var unvisited: [Pair] = []
        func enter(_ ones: [Int], _ others: [Int]) {
            for one in ones {
                for other in others where seen.insert(Pair(one: one, other: other)).inserted {
                    unvisited.append(Pair(one: one, other: other))
                }
            }
        }
        enter(reachable(from: 0), other.reachable(from: 0))
        while let pair = unvisited.popLast(), seen.count < 100_000 {
            switch (program[pair.one], other.program[pair.other]) {
            case (.accept, .accept): return true
            case (.take(let a), .take(let b)) where a.intersects(b):
                enter(reachable(from: pair.one + 1), other.reachable(from: pair.other + 1))
            default: break
            }
        }
        return false
    }

    /// The places that are reached without taking input, and that take some or accept.
    private func reachable(from start: Int) -> [Int] {
        var places: [Int] = []
        var seen: Set<Int> = []
        var stack = [start]
        while let place = stack.popLast() {
            guard seen.insert(place).inserted else { continue }
            switch program[place] {
            case .jump(let target): stack.append(target)
            case .split(let first, let second): stack += [second, first]
            case .save, .progress, .start, .end: stack.append(place + 1)
            case .take, .accept: places.append(place)
            }
        }
        return places
    }
}

extension Automaton.Instruction {
    fileprivate static func choice(_ inner: Int, _ outer: Int, _ isLazy: Bool) -> Self {
        isLazy ? .split(outer, inner) : .split(inner, outer)
    }
}

extension Expression {
    static func literal(_ scalars: [UInt32]) -> Expression {
        .concatenation(scalars.map { .scalars(.scalar($0)) })
    }

    static func repeated(_ expression: Expression, _ modifier: PatternPart.Modifier) -> Expression {
        switch modifier {
        case .once: expression
        case .optional: .repetition(expression, atLeast: 0, atMost: 1, isLazy: false)
        case .zeroOrMore: .repetition(expression, atLeast: 0, atMost: nil, isLazy: false)
        case .oneOrMore: .repetition(expression, atLeast: 1, atMost: nil, isLazy: false)
        }
    }
}
