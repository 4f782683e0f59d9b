/// A group in the pattern of a route, as code that builds URLs sees it.
package struct PatternGroup: Sendable {
    package let name: String
    package let isRequired: Bool
}

extension RoutePattern {
    /// The groups in order, those of the host first, each name once. `nil` if no URL can be built from the pattern:
    /// fallbacks and patterns for any scheme match URLs that differ in more than their groups.
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
