// Which of two patterns that match one URL precedes the other, in words.

extension RoutePattern {
    /// Returns the rule by which another pattern, which matches the same URL, precedes this one.
    func rule(precedingBy other: RoutePattern, for url: URLText) -> String {
        if scheme == nil, other.scheme != nil { return "it is for any scheme, the other for this one" }
        guard let path, let otherPath = other.path else {
            return "it is the fallback of its scheme, for URLs that nothing else matches"
        }
        if hostRank != other.hostRank {
            return "its host is \(Self.hostWords[hostRank]), which \(Self.hostWords[other.hostRank]) precedes"
        }
        if let host, let otherHost = other.host, let name = url.host, hostRank == 1 {
            let scalars = PathScalars.scalars(name)
            let rule = host.rule(precedingBy: otherHost, for: scalars) { "label \($0 + 1) of its host" }
            if let rule { return rule }
        }
        let rule = path.rule(precedingBy: otherPath, for: PathScalars.scalars(url.path)) { "segment \($0)" }
        if let rule { return rule }
        return method == nil && other.method != nil
            ? "it is equally specific and answers every method, the other only this one"
            : "it is equally specific, and its text sorts after that of the other"
    }

    /// Returns whether this pattern is more specific than another, which matches the same URL.
    func isMoreSpecific(than other: RoutePattern, for url: URLText) -> Bool {
        if (scheme == nil) != (other.scheme == nil) { return other.scheme == nil }
        guard let path, let otherPath = other.path else { return path != nil && other.path == nil }
        if hostRank != other.hostRank { return hostRank < other.hostRank }
        if let host, let otherHost = other.host, let name = url.host, hostRank == 1 {
            let scalars = PathScalars.scalars(name)
            let (own, others) = (host.specificity(for: scalars), otherHost.specificity(for: scalars))
            if own != others { return own.lexicographicallyPrecedes(others) }
        }
        let scalars = PathScalars.scalars(url.path)
        return path.specificity(for: scalars).lexicographicallyPrecedes(otherPath.specificity(for: scalars))
    }

    private static let hostWords = ["a literal", "a pattern", "any host"]

    private var hostRank: Int {
        guard let host else { return 2 }
        return host.isLiteral ? 0 : 1
    }
}

extension PathPattern {
    /// Returns the rule by which another pattern precedes this one; `nil` if both are equally specific.
    ///
    /// - Parameter title: Returns the words for the piece at an index.
    fileprivate func rule(
        precedingBy other: PathPattern, for component: [UInt32], _ title: (Int) -> String
    ) -> String? {
        let (own, others) = (specificity(for: component), other.specificity(for: component))
        for (index, (own, other)) in zip(own, others).enumerated() where own != other {
            return "\(title(index)) is \(Self.words(own)), which \(Self.words(other)) precedes"
        }
        return nil
    }

    /// Returns how specific the most specific of the variants is that match a component.
    fileprivate func specificity(for component: [UInt32]) -> [UInt8] {
        guard !variants.isEmpty else { return specificity(ofVariant: 0) }
        var steps = 0
        var best: [UInt8]?
        for number in variants.indices {
            let specificity = specificity(ofVariant: number)
            if let best, !specificity.lexicographicallyPrecedes(best) { continue }
            if component.withUnsafeBufferPointer({ automaton(ofVariant: number).accepts($0, counting: &steps) }) {
                best = specificity
            }
        }
        return best ?? specificity(ofVariant: 0)
    }

    /// Returns the words for an element of ``specificity(ofVariant:)``.
    private static func words(_ byte: UInt8) -> String {
        guard byte > 1, byte < .max else {
            return byte == 1 ? "the end of a pattern with optional groups" : "the end"
        }
        return switch PathSegment.Rank(rawValue: Int(byte) - 2) {
        case .literal: "a literal"
        case .mixed: "a literal mixed with groups"
        case .expression: "a group with an expression"
        case .name: "a named group"
        case .repeated: "an optional or repeated group"
        case .anything, nil: "“*”"
        }
    }
}
