extension PathPattern {
    /// One of the patterns that a pattern with optional groups stands for, with some of the groups and without the
    /// others. The tree contains each variant under its own segments, so an omitted group does not affect the rank of
    /// the segments before it.
    struct Variant: Sendable {
        let parts: [PatternPart]
        let division: PathSegment.Division
        /// Decides whether a component matches; `nil` if the segments decide it.
        let automaton: Automaton?

        init(_ parts: [PatternPart], _ delimiter: UInt32) {
            self.parts = parts
            division = PathSegment.divide(parts, delimiter)
            let isDecidedBySegments = division.rest == nil && delimiter == PathScalars.separator
            automaton = isDecidedBySegments ? nil : Automaton(bounded: parts, delimiter: delimiter)
        }

        var segments: [PathSegment] { division.segments }
        /// How specific the rest is, if the segments are not the whole variant.
        var rest: PathSegment.Rank? { division.rest }
    }

    /// How many variants a pattern may have. Further optional groups belong to the rest.
    private static let mostVariants = 16
    /// The maximum number of steps, for each scalar of a URL, that the automata of all variants may take together. A
    /// pattern that exceeds it has no variants: its optional groups belong to its rest. This bounds the time that it
    /// takes to parse a pattern.
    private static let mostSteps = SearchWork.most / SearchWork.scalars / 4

    /// Returns the variants of a pattern, beginning with the one that has all groups; an empty array if it has no
    /// optional groups, or exceeds `mostSteps`.
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

    /// Returns the automaton of a variant. One that no search needs is not stored, and is created by each call.
    func automaton(ofVariant number: Int) -> Automaton {
        guard !variants.isEmpty else { return automaton }
        return variants[number].automaton ?? Automaton(bounded: variants[number].parts, delimiter: delimiter)
    }

    /// The number of steps, for each scalar, to decide whether any of the variants matches.
    var stepsOfVariants: Int {
        if variants.isEmpty { return work.perScalar }
        return variants.reduce(0) { $0 + ($1.automaton?.work.perScalar ?? 0) }
    }

    /// Returns how specific a variant is; see ``PathSegment/Division/specificity(end:)``. The end of a pattern without
    /// optional groups precedes that of one with such groups.
    func specificity(ofVariant number: Int) -> [UInt8] {
        variants.isEmpty ? division.specificity(end: 0) : variants[number].division.specificity(end: 1)
    }
}
