import PluginABI

/// What stands behind a segment: a ``PathTree``, or a ``RouteEntry`` that is alone there, and then takes as many segments
/// as its pattern has, whatever they are if they are not empty.
class PathNode: @unchecked Sendable {
    // Immutable; what is added says for itself why it can be shared.

    /// Asked in each step of a search, instead of a cast.
    let isEntry: Bool

    init(isEntry: Bool) { self.isEntry = isEntry }
}

extension PathNode {
    var entry: RouteEntry? { isEntry ? unsafeDowncast(self, to: RouteEntry.self) : nil }
    var tree: PathTree? { isEntry ? nil : unsafeDowncast(self, to: PathTree.self) }
}

/// A node as the one before refers to it.
struct PathReference: PersistentMapReference {
    let object: Unmanaged<PathNode>
    /// Of a route, whose entry need not be read then; nil for a tree.
    let destination: Unmanaged<RouteDestination>?

    @inline(__always)
    init(to node: PathNode) {
        object = .passUnretained(node)
        destination = node.entry.map { .passUnretained($0.destination) }
    }
}

/// Paths as a tree of their segments, searched from the most specific branch to the least specific one.
///
/// A pattern is entered segment by segment, as long as each segment can be decided alone; what follows (`*`, `:rest+`,
/// optional parts) is decided by the pattern's automaton on the whole path. Every node is visited at most once in a
/// search, since each is reached in one way only. A route that is alone behind a segment, with nothing but names to
/// come, needs no nodes there: many routes look like that, and each node would be one more thing to fetch from memory.
///
/// Trees share what they have in common: changing a copy copies the nodes from the root to the change.
final class PathTree: PathNode, @unchecked Sendable {
    // Written only while it has one owner, hence @unchecked Sendable; and hence without checks of exclusive access.

    @exclusivity(unchecked) private(set) var literals = PersistentMap<PathReference>()
    /// What is more specific than any segment, in the order in which it is tried.
    @exclusivity(unchecked) private(set) var specific: [Edge] = []
    /// Behind any segment that is not empty.
    @exclusivity(unchecked) private(set) var name: PathNode?
    /// What is less specific than any segment, in the order in which it is tried.
    @exclusivity(unchecked) private(set) var general: [Edge] = []
    /// Of the path that ends here.
    @exclusivity(unchecked) private(set) var end: RouteEntry?
    /// How much a search takes here and below at most. What was removed behind literals may still be part of it.
    @exclusivity(unchecked) private(set) var work = SearchWork(fixed: SearchWork.visit)
    /// The part of it that is behind literals: of them a URL has one.
    @exclusivity(unchecked) private(set) var literalWork = SearchWork()

    init() { super.init(isEntry: false) }

    private init(copying other: PathTree) {
        literals = PersistentMap(copying: other.literals)
        (specific, name, general, end) = (other.specific, other.name, other.general, other.end)
        (work, literalWork) = (other.work, other.literalWork)
        super.init(isEntry: false)
    }

    /// What is to stand in the place of this: itself, the route that is alone in it, or nothing.
    private var shortest: PathNode? {
        guard literals.isEmpty, specific.isEmpty, general.isEmpty else { return self }
        guard let name else { return end }
        return name.isEntry && end == nil ? name : self
    }

    struct Edge {
        let rank: PathSegment.Rank
        /// What sorts edges of equal rank: of all patterns behind it, the text that sorts first.
        let text: String
        let step: Step

        enum Step {
            /// One segment of that shape, which an automaton decides.
            case segment([PatternPart], Automaton, PathNode)
            /// The rest of the path; the shape of the whole pattern.
            case rest(PathPattern.Shape, RouteEntry)

            func isSegment(_ shape: [PatternPart]) -> Bool {
                if case .segment(shape, _, _) = self { true } else { false }
            }
        }
    }
}

// MARK: - Changing

extension PathTree {
    /// Changes the entry of a path, which is nil where there is none, and where there shall be none.
    static func update(_ tree: inout PathTree, _ path: PathPattern, _ change: (inout RouteEntry?) -> Void) {
        update(&tree, path, behind: 0, change)
    }

    private static func update(
        _ tree: inout PathTree, _ path: PathPattern, behind depth: Int, _ change: (inout RouteEntry?) -> Void
    ) {
        if !isKnownUniquelyReferenced(&tree) { tree = PathTree(copying: tree) }
        defer { tree.work = tree.sumOfWork() }
        guard depth < path.segments.count else { return tree.updateEnd(path, change) }
        func updateChild(_ child: inout PathNode?) { updateNode(&child, path, behind: depth + 1, change) }
        let segment = path.segments[depth]
        switch segment {
        case .literal(let text):
            text.withUnsafeBufferPointer { text in
                tree.literals.update(text, updateChild)
                let child = tree.literals.find(text)?.object.takeUnretainedValue()
                let search = SearchWork(fixed: tree.literals.work(of: text))
                tree.literalWork =
                    tree.literals.isEmpty ? .init() : tree.literalWork.or(search + (child?.nodeWork ?? .init()))
            }
        case .name: updateChild(&tree.name)
        case .mixed(let parts), .expression(let parts):
            let shape = parts.shape
            var child: PathNode?
            var (automaton, before): (Automaton?, String?)
            if let place = tree.specific.firstIndex(where: { $0.step.isSegment(shape) }) {
                let old = tree.specific.remove(at: place)
                before = old.text
                if case .segment(_, let known, let node) = old.step { (automaton, child) = (known, node) }
            }
            let written = path.text
            var isThere = false
            updateNode(&child, path, behind: depth + 1) { entry in
                change(&entry)
                isThere = entry?.pattern.path?.text == written
            }
            guard let child else { return }
            let text =
                if isThere { min(before ?? written, written) } else if let before, before != written { before } else {
                    child.firstText
                }
            let step = Edge.Step.segment(
                shape, automaton ?? Automaton(bounded: parts, delimiter: PathScalars.separator), child)
            tree.insert(Edge(rank: segment.rank, text: text, step: step))
        }
    }

    /// The same behind a segment, where there may be nothing yet, or nothing any more.
    private static func updateNode(
        _ node: inout PathNode?, _ path: PathPattern, behind depth: Int, _ change: (inout RouteEntry?) -> Void
    ) {
        var tree: PathTree
        switch node.take() {
        case let known? where !known.isEntry: tree = unsafeDowncast(known, to: PathTree.self)
        case let other:
            var entry = other?.entry
            if path.hasOnlyNames(behind: depth),
                entry.map({ $0.destination.segmentCount == path.segments.count }) ?? true
            {
                change(&entry)
                node = entry
                return
            }
            tree = PathTree()
            if let entry { tree.take(entry, behind: depth) }
        }
        update(&tree, path, behind: depth, change)
        node = tree.shortest
    }

    /// Gives a route that was alone its place in an empty tree, behind so many segments.
    private func take(_ entry: RouteEntry, behind depth: Int) {
        if entry.destination.segmentCount == depth { end = entry } else { name = entry }
        work = sumOfWork()
    }

    private func updateEnd(_ path: PathPattern, _ change: (inout RouteEntry?) -> Void) {
        guard let rank = path.rest else { return change(&end) }
        let shape = path.shape
        var entry = takeRest(shape, from: &specific) ?? takeRest(shape, from: &general)
        change(&entry)
        if let entry { insert(Edge(rank: rank, text: path.text, step: .rest(shape, entry))) }
    }

    private func takeRest(_ shape: PathPattern.Shape, from edges: inout [Edge]) -> RouteEntry? {
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
    func entry(like path: PathPattern) -> RouteEntry? { entry(like: path, behind: 0) }

    private func entry(like path: PathPattern, behind depth: Int) -> RouteEntry? {
        guard depth < path.segments.count else {
            if path.rest == nil { return end }
            let shape = path.shape
            for edges in [specific, general] {
                for case .rest(shape, let entry) in edges.lazy.map(\.step) { return entry }
            }
            return nil
        }
        let child = child(path.segments[depth])
        guard let entry = child?.entry else { return child?.tree?.entry(like: path, behind: depth + 1) }
        let isSame = entry.destination.segmentCount == path.segments.count && path.hasOnlyNames(behind: depth + 1)
        return isSame ? entry : nil
    }

    /// What is behind a segment of that shape.
    private func child(_ segment: PathSegment) -> PathNode? {
        switch segment {
        case .literal(let text): return text.withUnsafeBufferPointer { literals.find($0)?.object.takeUnretainedValue() }
        case .name: return name
        case .mixed(let parts), .expression(let parts):
            let shape = parts.shape
            for case .segment(shape, _, let child) in specific.lazy.map(\.step) { return child }
            return nil
        }
    }

    /// In no order.
    func visit(_ body: (RouteEntry) -> Void) {
        if let end { body(end) }
        literals.visit { $0.visitEntries(body) }
        name?.visitEntries(body)
        for edge in specific + general {
            switch edge.step {
            case .segment(_, _, let child): child.visitEntries(body)
            case .rest(_, let entry): body(entry)
            }
        }
    }
}

extension PathPattern {
    fileprivate func hasOnlyNames(behind depth: Int) -> Bool {
        rest == nil && segments[depth...].allSatisfy { if case .name = $0 { true } else { false } }
    }
}

extension PathNode {
    fileprivate func visitEntries(_ body: (RouteEntry) -> Void) {
        if let entry { body(entry) } else { tree?.visit(body) }
    }

    /// Of all patterns here and below, the text that sorts first.
    fileprivate var firstText: String {
        var first: String?
        visitEntries { entry in
            guard let text = entry.pattern.path?.text else { return }
            first = min(first ?? text, text)
        }
        return first ?? ""
    }
}
