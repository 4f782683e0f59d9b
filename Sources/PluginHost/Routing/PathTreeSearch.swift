/// The route that a URL leads to.
struct RouteMatch {
    // Entry and destination are not retained: the table in which they were found keeps them alive.

    let entry: Unmanaged<RouteEntry>
    /// The destination of the entry, which contains the data that a call needs. Many entries share it, so it is in the
    /// processor's cache even if the entry is not.
    let destination: Unmanaged<RouteDestination>
    /// The captures of the pattern's groups; `nil` for a group that took no part in the match. If all groups are whole
    /// segments, `groups` itself is `nil`, and the entry's destination contains the segments' indices.
    var groups: [RawText?]?
}

extension PathTree {
    /// Returns the most specific entry that matches.
    ///
    /// - Parameter steps: Increased by the number of steps taken, which is at most that of ``work``.
    @inline(__always)
    static func match(_ url: URLText, in tree: Unmanaged<PathTree>, counting steps: inout Int) -> RouteMatch? {
        var search = Search(path: url.path, segments: url.segments, steps: steps)
        defer { steps = search.steps }
        guard let entry = search.visit(tree, 0), let destination = search.destination else { return nil }
        return RouteMatch(entry: entry, destination: destination, groups: search.groups)
    }

    private struct Search {
        let path: RawText
        let segments: UnsafeBufferPointer<RawText>
        /// The path as scalars, once an automaton needs them.
        var scalars: Scalars?
        /// The number of steps so far, as ``SearchWork`` counts them.
        var steps: Int
        /// The destination of the entry that was found.
        var destination: Unmanaged<RouteDestination>?
        var groups: [RawText?]?

        /// Continues the search in a node, with the segment at `index`.
        @inline(__always)
        mutating func enter(_ node: PathReference, _ index: Int) -> Unmanaged<RouteEntry>? {
            guard let destination = node.destination else {
                return visit(.fromOpaque(node.object.toOpaque()), index)  // A node without destination is a tree.
            }
            guard destination._withUnsafeGuaranteedRef({ $0.segmentCount }) == segments.count else { return nil }
            for segment in segments[index...] where segment.isEmpty { return nil }
            let entry = Unmanaged<RouteEntry>.fromOpaque(node.object.toOpaque())
            return takes(entry, destination) ? entry : nil
        }

        mutating func visit(_ tree: Unmanaged<PathTree>, _ index: Int) -> Unmanaged<RouteEntry>? {
            steps &+= SearchWork.visit
            return tree._withUnsafeGuaranteedRef { tree in
                let isEnd = index == segments.count
                if isEnd {
                    if let entry = tree.end, takes(entry) { return .passUnretained(entry) }
                } else if let child = tree.literals.find(segments[index]), let found = enter(child, index + 1) {
                    return found
                }
                if !tree.specific.isEmpty, let found = follow(tree.specific, index) { return found }
                if let child = tree.name, !isEnd, !segments[index].isEmpty,
                    let found = enter(PathReference(to: child), index + 1)
                {
                    return found
                }
                return tree.general.isEmpty ? nil : follow(tree.general, index)
            }
        }

        @inline(never)
        private mutating func follow(_ edges: [Edge], _ index: Int) -> Unmanaged<RouteEntry>? {
            for edge in edges {
                switch edge.step {
                case .segment(_, let automaton, let child):
                    guard index < segments.count, accepts(automaton, index) else { continue }
                    if let found = enter(PathReference(to: child), index + 1) { return found }
                case .rest(_, let entry):
                    if takes(entry) { return .passUnretained(entry) }
                }
            }
            return nil
        }

        private mutating func takes(_ entry: RouteEntry) -> Bool {
            takes(.passUnretained(entry), .passUnretained(entry.destination))
        }

        @inline(__always)
        private mutating func takes(
            _ entry: Unmanaged<RouteEntry>, _ destination: Unmanaged<RouteDestination>
        ) -> Bool {
            self.destination = destination
            return destination._withUnsafeGuaranteedRef { $0.capturesWholeSegments }
                || matches(entry.takeUnretainedValue().pattern)
        }

        @inline(never)
        private mutating func matches(_ pattern: RoutePattern) -> Bool {
            let text = readScalars()
            let taken = text.path.withUnsafeBufferPointer { pattern.path?.automaton.match($0, counting: &steps) }
            guard let taken else { return false }
            groups = PathScalars.texts(taken, of: path, text.path)
            return true
        }

        private mutating func accepts(_ automaton: Automaton, _ segment: Int) -> Bool {
            let text = readScalars()
            return text.path.withUnsafeBufferPointer {
                automaton.accepts(.init(rebasing: $0[text.segments[segment]]), counting: &steps)
            }
        }

        private mutating func readScalars() -> Scalars {
            if let scalars { return scalars }
            let read = Scalars(path)
            scalars = read
            return read
        }

        /// A path in the form that automata read.
        struct Scalars {
            let path: [UInt32]
            let segments: [Range<Int>]

            init(_ text: RawText) {
                path = PathScalars.scalars(text)
                segments = path.split(separator: PathScalars.separator, omittingEmptySubsequences: false).map(\.indices)
            }
        }
    }
}
