extension PathPattern {
    /// One of the patterns that a pattern with optional groups stands for: each of the groups is there or not. The tree
    /// finds each of them by its own segments, so that a group that is not there has no influence on what is before it.
    struct Variant: Sendable {
        let parts: [PatternPart]
        let segments: [PathSegment]
        /// How specific the rest is, if the segments are not the whole variant.
        let rest: PathSegment.Rank?
        /// Decides whether a component matches; `nil` if the segments decide it.
        let automaton: Automaton?

        init(_ parts: [PatternPart], _ delimiter: UInt32) {
            self.parts = parts
            (segments, rest) = PathSegment.divide(parts, delimiter)
            let isDecidedBySegments = rest == nil && delimiter == PathScalars.separator
            automaton = isDecidedBySegments ? nil : Automaton(bounded: parts, delimiter: delimiter)
        }
    }

    /// How many variants a pattern may have. Further optional groups belong to the rest.
    private static let mostVariants = 16
    /// How many steps for each scalar of a URL the automata of all variants may take together: with larger expressions, a
    /// pattern has no variants, and its optional groups belong to its rest. This bounds the time in which it is read.
    private static let mostSteps = SearchWork.most / SearchWork.scalars / 4

    /// Returns the variants of a pattern, beginning with the one that has all groups; none if it has no optional groups.
    ///
    /// - Parameter steps: How many steps the automaton of the pattern takes for each scalar.
    static func variants(of parts: [PatternPart], _ delimiter: UInt32, steps: Int) -> [Variant] {
        var variants: [[PatternPart]] = [[]]
        for part in parts {
            let isOptional = part.modifier == .optional || part.modifier == .zeroOrMore
            guard isOptional, variants.count * 2 <= mostVariants else {
                variants = variants.map { $0 + [part] }
                continue
            }
            var present = part
            present.modifier = part.modifier == .optional ? .once : .oneOrMore
            variants = variants.flatMap { [$0 + [present], $0] }
        }
        guard variants.count > 1, steps * variants.count <= mostSteps else { return [] }
        var different: [Variant] = []
        for variant in variants.lazy.map({ Variant($0, delimiter) }) {
            let isKnown =
                variant.rest == nil && different.contains { $0.rest == nil && $0.segments == variant.segments }
            if !isKnown { different.append(variant) }
        }
        return different
    }

    /// The numbers of the variants; that of a pattern without optional groups is 0.
    var variantNumbers: Range<Int> { 0..<max(1, variants.count) }

    func segments(ofVariant number: Int) -> [PathSegment] { variants.isEmpty ? segments : variants[number].segments }

    func rest(ofVariant number: Int) -> PathSegment.Rank? { variants.isEmpty ? rest : variants[number].rest }

    /// Returns the automaton of a variant, which is created if a search does not need it.
    func automaton(ofVariant number: Int) -> Automaton {
        guard !variants.isEmpty else { return automaton }
        return variants[number].automaton ?? Automaton(bounded: variants[number].parts, delimiter: delimiter)
    }

    /// How many steps deciding all variants takes for each scalar.
    var stepsOfVariants: Int {
        if variants.isEmpty { return work.perScalar }
        return variants.reduce(0) { $0 + ($1.automaton?.work.perScalar ?? 0) }
    }

    /// Returns how specific a variant is: of two that match a component, the one that precedes lexicographically is the
    /// more specific one. The ranks of the segments come first; then the end of a pattern without optional groups
    /// precedes that of one with such groups, which precedes what can have any number of segments.
    func specificity(ofVariant number: Int) -> [UInt8] {
        func byte(_ rank: PathSegment.Rank) -> UInt8 { UInt8(rank.rawValue) + 2 }
        let ranks = segments(ofVariant: number).map { byte($0.rank) }
        return switch rest(ofVariant: number) {
        case nil: ranks + [variants.isEmpty ? 0 : 1]
        case .repeated?: ranks + [byte(.repeated)]
        case .anything?: ranks + [byte(.anything)]
        // Anything may follow the segment that begins the rest.
        case let rest?: ranks + [byte(rest), byte(.anything)]
        }
    }
}
