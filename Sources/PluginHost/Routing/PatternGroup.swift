/// A group in the pattern of a route, for who writes URLs of it.
package struct PatternGroup: Sendable {
    package let name: String
    package let isRequired: Bool
}

extension RoutePattern {
    /// The groups in their order, the host's first, each name once; nil for a pattern that has no URL of its own:
    /// fallbacks, and patterns for any scheme, match more than one.
    var urlGroups: [PatternGroup]? {
        guard scheme != nil, let path else { return nil }
        var groups: [PatternGroup] = []
        for part in (host?.parts ?? []) + path.parts
        where !part.name.isEmpty && !groups.contains(where: { $0.name == part.name }) {
            groups.append(
                PatternGroup(name: part.name, isRequired: part.modifier == .once || part.modifier == .oneOrMore))
        }
        return groups
    }
}
