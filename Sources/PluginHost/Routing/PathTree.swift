import PluginABI

/// Paths as a tree of their segments, searched from the most specific branch to the least specific one.
///
/// A pattern is entered segment by segment, as long as each segment can be decided alone; what follows (`*`, `:rest+`,
/// optional parts) is decided by the pattern's automaton on the whole path. Every node is visited at most once in a
/// search, since each is reached in one way only.
///
/// Trees share what they have in common: changing a copy copies the nodes from the root to the change.
final class PathTree: @unchecked Sendable {
    // Written only while it has one owner, hence @unchecked Sendable; and hence without checks of exclusive access.

    @exclusivity(unchecked) private var literals = TextMap<PathTree>()
    /// What is more specific than any segment, in the order in which it is tried.
    @exclusivity(unchecked) private var specific: [Edge] = []
    /// Behind any segment that is not empty.
    @exclusivity(unchecked) private var name: PathTree?
    /// What is less specific than any segment, in the order in which it is tried.
    @exclusivity(unchecked) private var general: [Edge] = []
    @exclusivity(unchecked) private var entry: RouteEntry?

    init() {}

    private init(copying other: PathTree) {
        literals = TextMap(copying: other.literals)
        (specific, name, general, entry) = (other.specific, other.name, other.general, other.entry)
    }

    private var isEmpty: Bool {
        literals.isEmpty && specific.isEmpty && name == nil && general.isEmpty && entry == nil
    }

    private struct Edge {
        let rank: PathSegment.Rank
        /// What sorts edges of equal rank: of all patterns behind it, the text that sorts first.
        let text: String
        let step: Step

        enum Step {
            /// One segment of that shape, which an automaton decides.
            case segment([PatternPart], Automaton, PathTree)
            /// The rest of the path; the shape of the whole pattern.
            case rest([PatternPart], RouteEntry)

            func isSegment(_ shape: [PatternPart]) -> Bool {
                if case .segment(shape, _, _) = self { true } else { false }
            }
        }
    }
}

// MARK: - Searching

/// What a URL leads to.
struct RouteMatch {
    /// Not counted: the table that it was found in keeps it.
    let entry: Unmanaged<RouteEntry>
    /// What the groups of the pattern have taken, nil for one that took no part. Where all groups are whole segments
    /// this is nil, and `RouteEntry.groups` says which ones.
    var groups: [RawText?]?
}

extension PathTree {
    /// The most specific entry that matches.
    @inline(__always)
    static func match(_ url: URLText, in tree: Unmanaged<PathTree>) -> RouteMatch? {
        var search = Search(path: url.path, segments: url.segments)
        guard let entry = search.visit(tree, 0) else { return nil }
        return RouteMatch(entry: entry, groups: search.groups)
    }

    private struct Search {
        let path: RawText
        let segments: UnsafeBufferPointer<RawText>
        /// The path as automata read it, once one has needed it.
        var scalars: [UInt32]?
        var groups: [RawText?]?

        mutating func visit(_ tree: Unmanaged<PathTree>, _ index: Int) -> Unmanaged<RouteEntry>? {
            tree._withUnsafeGuaranteedRef { tree in
                let isEnd = index == segments.count
                if isEnd {
                    if let entry = tree.entry.map(Unmanaged.passUnretained), takes(entry) { return entry }
                } else if let child = tree.literals.find(segments[index]), let found = visit(child, index + 1) {
                    return found
                }
                if !tree.specific.isEmpty, let found = follow(tree.specific, index) { return found }
                if let child = tree.name.map(Unmanaged.passUnretained), !isEnd, !segments[index].isEmpty,
                    let found = visit(child, index + 1)
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
                    guard index < segments.count,
                        automaton.match(PathScalars.scalars(segments[index])[...]) != nil
                    else { continue }
                    if let found = visit(.passUnretained(child), index + 1) { return found }
                case .rest(_, let entry):
                    if takes(.passUnretained(entry)) { return .passUnretained(entry) }
                }
            }
            return nil
        }

        @inline(__always)
        private mutating func takes(_ entry: Unmanaged<RouteEntry>) -> Bool {
            entry._withUnsafeGuaranteedRef { $0.hasPlaces } || matches(entry.takeUnretainedValue().pattern)
        }

        @inline(never)
        private mutating func matches(_ pattern: RoutePattern) -> Bool {
            let input = scalars ?? PathScalars.scalars(path)
            scalars = input
            guard let taken = pattern.path?.automaton.match(input[...]) else { return false }
            groups = PathScalars.texts(taken, of: path, input)
            return true
        }
    }
}

// MARK: - Changing

extension PathTree {
    /// Changes the entry of a path, which is nil where there is none, and where there shall be none.
    static func update(_ tree: inout PathTree, _ path: PathPattern, _ change: (inout RouteEntry?) -> Void) {
        update(&tree, path.segments[...], path, change)
    }

    private static func update(
        _ tree: inout PathTree, _ segments: ArraySlice<PathSegment>, _ path: PathPattern,
        _ change: (inout RouteEntry?) -> Void
    ) {
        if !isKnownUniquelyReferenced(&tree) { tree = PathTree(copying: tree) }
        guard let segment = segments.first else { return tree.updateEnd(path, change) }
        func updateChild(_ child: inout PathTree?) {
            var changed = child.take() ?? PathTree()
            update(&changed, segments.dropFirst(), path, change)
            child = changed.isEmpty ? nil : changed
        }
        switch segment {
        case .literal(let text): text.withUnsafeBufferPointer { tree.literals.update($0, updateChild) }
        case .name: updateChild(&tree.name)
        case .mixed(let parts), .expression(let parts):
            let shape = parts.shape
            var child: PathTree?
            var (automaton, before): (Automaton?, String?)
            if let place = tree.specific.firstIndex(where: { $0.step.isSegment(shape) }) {
                let old = tree.specific.remove(at: place)
                before = old.text
                if case .segment(_, let known, let tree) = old.step { (automaton, child) = (known, tree) }
            }
            updateChild(&child)
            guard let child else { return }
            let text = before == path.text ? child.firstText : min(before ?? path.text, path.text)
            let step = Edge.Step.segment(
                shape, automaton ?? Automaton(bounded: parts, delimiter: PathScalars.separator), child)
            tree.insert(Edge(rank: segment.rank, text: text, step: step))
        }
    }

    private func updateEnd(_ path: PathPattern, _ change: (inout RouteEntry?) -> Void) {
        guard let rank = path.rest else { return change(&entry) }
        let shape = path.shape
        var entry = takeRest(shape, from: &specific) ?? takeRest(shape, from: &general)
        change(&entry)
        if let entry { insert(Edge(rank: rank, text: path.text, step: .rest(shape, entry))) }
    }

    private func takeRest(_ shape: [PatternPart], from edges: inout [Edge]) -> RouteEntry? {
        let place = edges.firstIndex { if case .rest(shape, _) = $0.step { true } else { false } }
        guard let place, case .rest(_, let entry) = edges.remove(at: place).step else { return nil }
        return entry
    }

    private func insert(_ edge: Edge) {
        edge.rank < .name ? Self.insert(edge, into: &specific) : Self.insert(edge, into: &general)
    }

    private static func insert(_ edge: Edge, into edges: inout [Edge]) {
        let place = edges.firstIndex { (edge.rank, edge.text) < ($0.rank, $0.text) }
        edges.insert(edge, at: place ?? edges.endIndex)
    }
}

// MARK: - Reading

extension PathTree {
    /// The entry of a path that has the shape of another one.
    func entry(like path: PathPattern) -> RouteEntry? { entry(like: path.segments[...], path) }

    private func entry(like segments: ArraySlice<PathSegment>, _ path: PathPattern) -> RouteEntry? {
        guard let segment = segments.first else {
            if path.rest == nil { return entry }
            let shape = path.shape
            for edges in [specific, general] {
                for case .rest(shape, let entry) in edges.lazy.map(\.step) { return entry }
            }
            return nil
        }
        return child(segment)?.entry(like: segments.dropFirst(), path)
    }

    /// What is behind a segment of that shape.
    private func child(_ segment: PathSegment) -> PathTree? {
        switch segment {
        case .literal(let text): return text.withUnsafeBufferPointer { literals.find($0)?.takeUnretainedValue() }
        case .name: return name
        case .mixed(let parts), .expression(let parts):
            let shape = parts.shape
            for case .segment(shape, _, let child) in specific.lazy.map(\.step) { return child }
            return nil
        }
    }

    /// In no order.
    func visit(_ body: (RouteEntry) -> Void) {
        if let entry { body(entry) }
        literals.visit { $0.visit(body) }
        name?.visit(body)
        for edge in specific + general {
            switch edge.step {
            case .segment(_, _, let child): child.visit(body)
            case .rest(_, let entry): body(entry)
            }
        }
    }

    /// Of all patterns below, the text that sorts first.
    private var firstText: String {
        var first: String?
        visit { entry in
            guard let text = entry.pattern.path?.text else { return }
            first = min(first ?? text, text)
        }
        return first ?? ""
    }
}
