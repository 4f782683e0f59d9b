import PluginABI

/// A pattern as a nondeterministic automaton: a small program that is compiled once when the pattern is read. (R. Cox,
/// "Regular Expression Matching: the Virtual Machine Approach".)
///
/// ``PositionSets`` decides whether an input matches, for all states at once. The captures of the groups are found by a
/// walk along the states from which the end can be reached, in the order in which JavaScript's backtracking would try
/// them. Both take time proportional to the length of the input, with a factor that is known when the pattern is read:
/// ``work``.
struct Automaton: Sendable {
    enum Instruction {
        /// Consumes the next scalar if it is in the set, and continues at `next`.
        case take(ScalarSet, next: Int)
        /// Continues at both instructions, and prefers the first one.
        case split(Int, Int)
        case jump(Int)
        case save(Int)
        /// Does not continue.
        case fail
        case start, end
        case accept
    }

    private(set) var program: [Instruction] = []
    /// The number of groups. Each has two slots in the captures of a walk.
    let groupCount: Int
    private let largest: Int
    /// The number of instructions compiled so far. A repetition of an empty expression counts as one.
    private var effort = 0
    private(set) var sets = PositionSets()

    /// How many instructions a pattern may have. A repetition of an empty expression counts as one. This bounds the
    /// time that it takes to read a pattern.
    static let largest = 10_000

    /// Compiles a pattern.
    ///
    /// - Throws: `invalidPattern` if the pattern is too large.
    init(_ parts: [PatternPart], delimiter: UInt32?, of pattern: String) throws(PluginError) {
        groupCount = parts.count { !$0.name.isEmpty }
        largest = Self.largest
        try emit(parts, delimiter, pattern)
        guard let sets = PositionSets(program, isBounded: true) else {
            throw .tooLarge(
                pattern, "more than \(PositionSets.mostPositions) states, or too many transitions between them")
        }
        self.sets = sets
        guard work.steps <= SearchWork.most else {
            throw .tooLarge(
                pattern,
                "so many states and transitions that a URL could take \(work.steps) steps, and at most "
                    + "\(SearchWork.most) are allowed")
        }
    }

    /// Compiles parts that contain no expressions, or that belong to a pattern that is known not to be too large.
    init(bounded parts: [PatternPart], delimiter: UInt32?) {
        groupCount = parts.count { !$0.name.isEmpty }
        largest = .max
        try? emit(parts, delimiter, "")  // Throws only if the pattern is too large.
        sets = PositionSets(program, isBounded: false) ?? sets
    }

    /// The maximum work that a match takes. To find the captures, the input is read a second time, and a walk follows.
    /// The walk computes once for each position what can follow it. Where a group begins or ends, it also follows
    /// instructions.
    var work: SearchWork {
        let once = (sets.transitions + sets.longestTransition * (groupCount * 2 + 2)) * SearchWork.instruction
        return SearchWork(
            perScalar: sets.stepsPerScalar,
            walk: sets.stepsPerScalar + SearchWork.move + sets.mostFollowing * SearchWork.following
                + once / SearchWork.scalars + 1)
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
        try count(pattern)
        program.append(instruction)
    }

    private mutating func count(_ pattern: String) throws(PluginError) {
        effort += 1
        guard effort <= largest else { throw .tooLarge(pattern, "more than \(Self.largest) instructions") }
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
        if mayBeMissing { try append(.accept, pattern) }  // Replaced by the split when its target is known.
        try emit(.literal(part.prefix), pattern)
        try append(.save(group * 2), pattern)
        if mayBeMissing, part.prefix.isEmpty, part.suffix.isEmpty, expression.canBeEmpty {
            try emitNotEmpty(expression, pattern)
        } else {
            try emit(expression, pattern)
        }
        if isRepeated {
            let again = Expression.concatenation([.literal(part.suffix), .literal(part.prefix), expression])
            try emit(.repetition(again, atLeast: 0, atMost: nil, isLazy: false), pattern)
        }
        try append(.save(group * 2 + 1), pattern)
        try emit(.literal(part.suffix), pattern)
        if mayBeMissing { program[skip] = .split(skip + 1, program.count) }
    }

    /// Compiles an expression so that it cannot match the empty text, since JavaScript skips an optional group rather
    /// than let it match that. The expression is compiled twice: for the state before a scalar is consumed, which ends
    /// in `fail`, and for the state afterwards.
    private mutating func emitNotEmpty(_ expression: Expression, _ pattern: String) throws(PluginError) {
        let first = program.count
        try emit(expression, pattern)
        try append(.fail, pattern)
        let second = program.count
        try emit(expression, pattern)
        for index in first..<second {
            if case .take(let set, let next) = program[index] {
                program[index] = .take(set, next: next - first + second)
            }
        }
    }

    private mutating func emit(_ expression: Expression, _ pattern: String) throws(PluginError) {
        switch expression {
        case .empty: break
        case .start: try append(.start, pattern)
        case .end: try append(.end, pattern)
        case .scalars(let set): try append(.take(set, next: program.count + 1), pattern)
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
            for _ in 0..<atLeast {
                try count(pattern)
                try emit(repeated, pattern)
            }
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
}

extension PluginError {
    static func tooLarge(_ pattern: String, _ what: String) -> PluginError {
        PluginError(
            .invalidPattern,
            "The pattern “\(pattern.shortened)” is too large: compiled, it has \(what). Use fewer repetitions in its "
                + "expressions.")
    }
}

extension Automaton.Instruction {
    fileprivate static func choice(_ inner: Int, _ outer: Int, _ isLazy: Bool) -> Self {
        isLazy ? .split(outer, inner) : .split(inner, outer)
    }
}

extension Expression {
    /// Whether the expression can match the empty text, possibly only at the beginning or end of the input.
    fileprivate var canBeEmpty: Bool {
        switch self {
        case .empty, .start, .end: true
        case .scalars: false
        case .concatenation(let pieces): pieces.allSatisfy(\.canBeEmpty)
        case .alternation(let choices): choices.contains(where: \.canBeEmpty)
        case .repetition(let repeated, let atLeast, _, _): atLeast == 0 || repeated.canBeEmpty
        }
    }

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
