/// The groups in the pattern of a route, for who writes its URLs.
package struct PatternGroups {
    /// In their order, the host's first, each name once.
    package let groups: [(name: String, isRequired: Bool)]

    /// nil for a pattern that has no URL of its own: fallbacks, and patterns for any scheme, match more than one.
    init?(_ pattern: RoutePattern) {
        guard pattern.scheme != nil, let path = pattern.path else { return nil }
        var groups: [(name: String, isRequired: Bool)] = []
        for part in (pattern.host?.parts ?? []) + path.parts
        where !part.name.isEmpty && !groups.contains(where: { $0.name == part.name }) {
            groups.append((part.name, part.modifier == .once || part.modifier == .oneOrMore))
        }
        self.groups = groups
    }
}
