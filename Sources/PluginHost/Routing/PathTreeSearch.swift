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

/// A function that decides whether a search may find a route that matches. Lent to the search.
typealias RouteChoice = UnsafePointer<(RouteEntry) -> Bool>

extension PathTree {
    /// An entry that a search has found, before the captures of its groups are known.
    struct Found {
        let entry: Unmanaged<RouteEntry>
        fileprivate let destination: Unmanaged<RouteDestination>
        /// The variant of the path that matches.
        fileprivate let variant: Int

        /// Returns whether this entry precedes another that matches the same URL: whether it is more specific, or is
        /// equally specific and alone has a method, or has the text that sorts first.
        func precedes(_ other: Found) -> Bool {
            let (mine, others) = (entry.takeUnretainedValue().pattern, other.entry.takeUnretainedValue().pattern)
            guard let path = mine.path, let otherPath = others.path else { return false }
            let specificity = path.specificity(ofVariant: variant)
            let otherSpecificity = otherPath.specificity(ofVariant: other.variant)
            if specificity != otherSpecificity { return specificity.lexicographicallyPrecedes(otherSpecificity) }
            if (mine.method == nil) != (others.method == nil) { return others.method == nil }
            return (mine.host?.text ?? "", path.text) < (others.host?.text ?? "", otherPath.text)
        }

        /// Returns whether this entry precedes every other that is equally specific up to the end of the URL and whose
        /// key does not sort before `key`.
        fileprivate func precedesAll(from key: Edge.Key) -> Bool {
            let pattern = entry.takeUnretainedValue().pattern
            guard let path = pattern.path, pattern.host?.names.isEmpty != false else { return false }
            return path.variants.isEmpty && path.rest == nil && Edge.Key(pattern) <= key
        }
    }

    /// Returns the most specific entry that matches.
    ///
    /// - Parameters:
    ///   - choice: Decides which entries the search may find; `nil` for all.
    ///   - steps: Increased by the number of steps taken, which is at most that of ``work``.
    @inline(__always)
    static func match(
        _ url: URLText, in tree: Unmanaged<PathTree>, choosing choice: RouteChoice?, counting steps: inout Int
    ) -> RouteMatch? {
        var search = Search(path: url.path, segments: url.segments, choice: choice, steps: steps)
        defer { steps = search.steps }
        guard let entry = search.visit(tree, 0), let destination = search.destination else { return nil }
        let capturesWholeSegments = destination._withUnsafeGuaranteedRef { $0.capturesWholeSegments }
        return RouteMatch(
            entry: entry, destination: destination, groups: capturesWholeSegments ? nil : search.captures(of: entry))
    }

    /// Returns the most specific entry that matches, without its captures.
    static func find(
        _ url: URLText, in tree: Unmanaged<PathTree>, choosing choice: RouteChoice?, counting steps: inout Int
    ) -> Found? {
        var search = Search(path: url.path, segments: url.segments, choice: choice, steps: steps)
        defer { steps = search.steps }
        guard let entry = search.visit(tree, 0), let destination = search.destination else { return nil }
        return Found(entry: entry, destination: destination, variant: search.variant)
    }

    /// Returns an entry with the captures of its path.
    static func match(_ found: Found, _ url: URLText, counting steps: inout Int) -> RouteMatch {
        var search = Search(path: url.path, segments: url.segments, choice: nil, steps: steps)
        defer { steps = search.steps }
        let capturesWholeSegments = found.destination._withUnsafeGuaranteedRef { $0.capturesWholeSegments }
        return RouteMatch(
            entry: found.entry, destination: found.destination,
            groups: capturesWholeSegments ? nil : search.captures(of: found.entry))
    }

    private struct Search {
        let path: RawText
        let segments: UnsafeBufferPointer<RawText>
        /// Decides which entries the search may find; `nil` for all.
        let choice: RouteChoice?
        /// The path as scalars, once an automaton needs them.
        var scalars: Scalars?
        /// The number of steps so far, as ``SearchWork`` counts them.
        var steps: Int
        /// The destination of the entry that was found.
        var destination: Unmanaged<RouteDestination>?
        /// The variant of the path of the entry that was found.
        var variant = 0

        init(path: RawText, segments: UnsafeBufferPointer<RawText>, choice: RouteChoice?, steps: Int) {
            (self.path, self.segments, self.choice, self.steps) = (path, segments, choice, steps)
        }

        /// Returns whether the search may find an entry that matches.
        @inline(__always)
        private func isWanted(_ entry: Unmanaged<RouteEntry>) -> Bool {
            guard let choice else { return true }
            return choice.pointee(entry.takeUnretainedValue())
        }

        /// Continues the search in a node, with the segment at `index`.
        @inline(__always)
        mutating func enter(_ node: PathReference, _ index: Int) -> Unmanaged<RouteEntry>? {
            guard let destination = node.destination else {
                return visit(.fromOpaque(node.object.toOpaque()), index)  // A node without destination is a tree.
            }
            guard destination._withUnsafeGuaranteedRef({ $0.segmentCount }) == segments.count else { return nil }
            for segment in segments[index...] where segment.isEmpty { return nil }
            self.destination = destination
            let entry = Unmanaged<RouteEntry>.fromOpaque(node.object.toOpaque())
            return isWanted(entry) ? entry : nil
        }

        mutating func visit(_ tree: Unmanaged<PathTree>, _ index: Int) -> Unmanaged<RouteEntry>? {
            steps &+= SearchWork.visit
            return tree._withUnsafeGuaranteedRef { tree in
                let isEnd = index == segments.count
                if isEnd {
                    if let entry = tree.end, isWanted(.passUnretained(entry)) { return take(entry, 0) }
                    if !tree.variantEnds.isEmpty, let found = takeFirst(tree.variantEnds) { return found }
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

        /// Takes the first of the variants that end where the URL does.
        @inline(never)
        private mutating func takeFirst(_ ends: [Edge]) -> Unmanaged<RouteEntry>? {
            for edge in ends {
                if case .rest(_, let variant, let entry) = edge.step, isWanted(.passUnretained(entry)) {
                    return take(entry, variant)
                }
            }
            return nil
        }

        @inline(__always)
        private mutating func take(_ entry: RouteEntry, _ variant: Int) -> Unmanaged<RouteEntry> {
            destination = .passUnretained(entry.destination)
            self.variant = variant
            return .passUnretained(entry)
        }

        /// Follows the edges of the first rank in which an edge leads to an entry. If several of them do, the patterns
        /// of their entries decide.
        @inline(never)
        private mutating func follow(_ edges: [Edge], _ index: Int) -> Unmanaged<RouteEntry>? {
            var best: (found: Found, rank: PathSegment.Rank)?
            for edge in edges {
                if let best {
                    let isDecided = index + 1 >= segments.count && best.found.precedesAll(from: edge.key)
                    if isDecided || edge.rank != best.rank { break }
                }
                guard let found = follow(edge, index) else { continue }
                guard let known = best?.found else {
                    best = (found, edge.rank)
                    continue
                }
                steps &+= SearchWork.visit
                if found.precedes(known) { best = (found, edge.rank) }
            }
            guard let found = best?.found else { return nil }
            (destination, variant) = (found.destination, found.variant)
            return found.entry
        }

        private mutating func follow(_ edge: Edge, _ index: Int) -> Found? {
            variant = 0
            switch edge.step {
            case .segment(_, let automaton, let child):
                guard index < segments.count, accepts(automaton, index) else { return nil }
                guard let entry = enter(PathReference(to: child), index + 1), let destination else { return nil }
                return Found(entry: entry, destination: destination, variant: variant)
            case .rest(_, let variant, let entry):
                let text = readScalars()
                let accepts = text.path.withUnsafeBufferPointer {
                    entry.pattern.path?.automaton(ofVariant: variant).accepts($0, counting: &steps)
                }
                guard accepts == true, isWanted(.passUnretained(entry)) else { return nil }
                return Found(
                    entry: .passUnretained(entry), destination: .passUnretained(entry.destination), variant: variant)
            }
        }

        /// Returns the captures of the groups in a path that the entry matches.
        @inline(never)
        mutating func captures(of entry: Unmanaged<RouteEntry>) -> [RawText?] {
            // If only the host has other groups, those of the path are whole segments nevertheless.
            if let path = entry.takeUnretainedValue().pattern.path, path.isPlain {
                return path.segments.indices.filter { path.segments[$0].rank == .name }.map { segments[$0] }
            }
            let text = readScalars()
            let taken = text.path.withUnsafeBufferPointer {
                entry.takeUnretainedValue().pattern.path?.automaton.match($0, counting: &steps)
            }
            return PathScalars.texts(taken ?? [], of: path, text.path)
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
