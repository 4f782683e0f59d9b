extension RouteEntry {
    /// Returns the match of a URL with this route alone, including the captures of its groups; `nil` if the route does
    /// not match.
    ///
    /// - Parameter steps: Increased by the number of steps taken, as ``SearchWork`` counts them.
    func match(_ url: URLText, counting steps: inout Int) -> RouteMatch? {
        var match = RouteMatch(
            entry: .passUnretained(self), destination: .passUnretained(destination), groups: nil)
        if destination.capturesWholeSegments { return match }
        var groups: [RawText?] = []
        if let host = pattern.host, !host.names.isEmpty {
            guard let name = url.host, let taken = host.captures(in: name, counting: &steps) else { return nil }
            groups = taken
        }
        if let path = pattern.path {
            guard let taken = path.captures(in: url.path, counting: &steps) else { return nil }
            groups += taken
        }
        match.groups = groups
        return match
    }
}

extension PathPattern {
    /// Returns the captures of the groups in a component; `nil` if it does not match.
    fileprivate func captures(in text: RawText, counting steps: inout Int) -> [RawText?]? {
        let scalars = PathScalars.scalars(text)
        guard let taken = scalars.withUnsafeBufferPointer({ automaton.match($0, counting: &steps) }) else { return nil }
        return PathScalars.texts(taken, of: text, scalars)
    }
}
