/// The node after a segment: a ``PathTree``, or a ``RouteEntry`` if it is the only route there and its remaining
/// segments are names. The entry then matches as many segments as its pattern has, if they are not empty.
class PathNode: @unchecked Sendable {
    // Immutable. Each subclass states why it can be shared.

    /// Whether the node is an entry. It is checked in each step of a search, instead of a cast.
    let isEntry: Bool

    init(isEntry: Bool) { self.isEntry = isEntry }
}

extension PathNode {
    var entry: RouteEntry? { isEntry ? unsafeDowncast(self, to: RouteEntry.self) : nil }
    var tree: PathTree? { isEntry ? nil : unsafeDowncast(self, to: PathTree.self) }
}

/// A reference to a node from its parent.
struct PathReference: PersistentMapReference {
    let object: Unmanaged<PathNode>
    /// The destination of an entry, so that the entry itself need not be read; `nil` for a tree.
    let destination: Unmanaged<RouteDestination>?

    @inline(__always)
    init(to node: PathNode) {
        object = .passUnretained(node)
        destination = node.entry.map { .passUnretained($0.destination) }
    }
}

/// A tree of the segments of paths, searched from the most specific branch to the least specific one.
///
/// A pattern is stored segment by segment as long as each segment can be decided alone. The rest (`*`, `:rest+`) is
/// decided by the pattern's automaton on the whole path. A pattern with optional groups is stored once for each of its
/// variants. A search visits every node at most once, since only one path leads to each. If a single route follows a
/// segment and its remaining segments are names, its entry is stored there without further nodes: many routes are like
/// that, and each node would cost an access to memory.
///
/// Copies share unchanged nodes: changing a copy copies only the nodes from the root to the change.
final class PathTree: PathNode, @unchecked Sendable {
    // Changed only while it has one owner, hence @unchecked Sendable, and hence no checks of exclusive access.

    @exclusivity(unchecked) private(set) var literals = PersistentMap<PathReference>()
    /// The edges that are more specific than a name, in the order in which they are tried.
    @exclusivity(unchecked) private(set) var specific: [Edge] = []
    /// The node after a name, which matches any segment that is not empty.
    @exclusivity(unchecked) private(set) var name: PathNode?
    /// The edges that are less specific than a name, in the order in which they are tried.
    @exclusivity(unchecked) private(set) var general: [Edge] = []
    /// The entry of the path that ends here.
    @exclusivity(unchecked) private(set) var end: RouteEntry?
    /// The entries of which a variant ends here, sorted by their keys.
    @exclusivity(unchecked) private(set) var variantEnds: [Edge] = []
    /// The maximum work that a search takes here and below. It may include routes below literals that were removed.
    @exclusivity(unchecked) private(set) var work = SearchWork(fixed: SearchWork.visit)
    /// The part of ``work`` that is below literals, of which a URL can match only one.
    @exclusivity(unchecked) private(set) var literalWork = SearchWork()

    init() { super.init(isEntry: false) }

    private init(copying other: PathTree) {
        literals = PersistentMap(copying: other.literals)
        (specific, name, general, end) = (other.specific, other.name, other.general, other.end)
        variantEnds = other.variantEnds
        (work, literalWork) = (other.work, other.literalWork)
        super.init(isEntry: false)
    }

    /// The node that should replace this one: the tree itself, its only route, or nothing.
    private var shortest: PathNode? {
        guard mayBeShorter else { return self }
        guard let name else { return end }
        return name.isEntry && end == nil ? name : self
    }

    private var mayBeShorter: Bool {
        literals.isEmpty && specific.isEmpty && general.isEmpty && variantEnds.isEmpty
    }

    struct Edge {
        let rank: PathSegment.Rank
        /// The sort key among edges of equal rank: the first key of the patterns below the edge.
        let key: Key
        let step: Step

        /// Decides between equally specific patterns of paths: those with a method come first, then the text decides.
        struct Key: Comparable {
            let answersAll: Bool
            let text: String

            init(_ pattern: RoutePattern) { (answersAll, text) = (pattern.method == nil, pattern.path?.text ?? "") }

            static func < (left: Key, right: Key) -> Bool {
                left.answersAll == right.answersAll ? left.text < right.text : right.answersAll
            }
        }

        enum Step {
            /// One segment with a shape, decided by an automaton.
            case segment([PatternPart], Automaton, PathNode)
            /// The rest of a variant of a path, or its end, with the shape of the whole pattern.
            case rest(PathPattern.Shape, variant: Int, RouteEntry)

            func isSegment(_ shape: [PatternPart]) -> Bool {
                if case .segment(shape, _, _) = self { true } else { false }
            }
        }
    }
}

// MARK: - Changing

extension PathTree {
    /// Changes the entry of a path. `change` receives `nil` if there is none, and sets `nil` to remove it.
    static func update(_ tree: inout PathTree, _ path: PathPattern, _ change: (inout RouteEntry?) -> Void) {
        guard !path.variants.isEmpty else { return update(&tree, path, 0, behind: 0, change) }
        var entry: RouteEntry?
        update(&tree, path, 0, behind: 0) { first in
            change(&first)
            entry = first
        }
        for variant in path.variantNumbers.dropFirst() { update(&tree, path, variant, behind: 0) { $0 = entry } }
    }

    private static func update(
        _ tree: inout PathTree, _ path: PathPattern, _ variant: Int, behind depth: Int,
        _ change: (inout RouteEntry?) -> Void
    ) {
        if !isKnownUniquelyReferenced(&tree) { tree = PathTree(copying: tree) }
        tree.updateBranch(path, variant, behind: depth, change)
        tree.work = tree.sumOfWork()
    }

    /// Changes the entry of a path here or below, without the work of this node. Only for the only owner of the tree.
    private func updateBranch(
        _ path: PathPattern, _ variant: Int, behind depth: Int, _ change: (inout RouteEntry?) -> Void
    ) {
        let segments = path.segments(ofVariant: variant)
        guard depth < segments.count else { return updateEnd(path, variant, change) }
        func updateChild(_ child: inout PathNode?) {
            Self.updateNode(&child, path, variant, behind: depth + 1, change)
        }
        let segment = segments[depth]
        switch segment {
        case .literal(let text):
            text.withUnsafeBufferPointer { text in
                literals.update(text, updateChild)
                let below = literals.find(text)?.object._withUnsafeGuaranteedRef(\.nodeWork) ?? SearchWork()
                let search = SearchWork(fixed: literals.work(of: text))
                literalWork = literals.isEmpty ? .init() : literalWork.or(search + below)
            }
        case .name: updateChild(&name)
        case .mixed(let parts), .expression(let parts):
            let shape = parts.shape
            var child: PathNode?
            var (automaton, before): (Automaton?, Edge.Key?)
            if let index = specific.firstIndex(where: { $0.step.isSegment(shape) }) {
                let old = specific.remove(at: index)
                before = old.key
                if case .segment(_, let known, let node) = old.step { (automaton, child) = (known, node) }
            }
            var (old, new): (Edge.Key?, Edge.Key?)
            Self.updateNode(&child, path, variant, behind: depth + 1) { entry in
                old = entry.map { Edge.Key($0.pattern) }
                change(&entry)
                new = entry.map { Edge.Key($0.pattern) }
            }
            guard let child else { return }
            // If the first pattern was removed, another one is the first.
            let known: Edge.Key? = if let new { min(before ?? new, new) } else { before == old ? nil : before }
            guard let key = known ?? child.firstKey else { return }
            let step = Edge.Step.segment(
                shape, automaton ?? Automaton(bounded: parts, delimiter: PathScalars.separator), child)
            insert(Edge(rank: segment.rank, key: key, step: step))
        }
    }

    /// Changes the entry of a path in the node after a segment. There may be no node before or after the change.
    private static func updateNode(
        _ node: inout PathNode?, _ path: PathPattern, _ variant: Int, behind depth: Int,
        _ change: (inout RouteEntry?) -> Void
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
        update(&tree, path, variant, behind: depth, change)
        node = tree.mayBeShorter ? tree.shortest : tree
    }

    /// Adds a route that was stored without nodes to an empty tree, after `depth` segments.
    private func take(_ entry: RouteEntry, behind depth: Int) {
        if entry.destination.segmentCount == depth { end = entry } else { name = entry }
        work = sumOfWork()
    }

    private func updateEnd(_ path: PathPattern, _ variant: Int, _ change: (inout RouteEntry?) -> Void) {
        let rest = path.rest(ofVariant: variant)
        if rest == nil, path.variants.isEmpty { return change(&end) }
        let shape = path.shape
        var entry =
            takeRest(shape, variant, from: &variantEnds) ?? takeRest(shape, variant, from: &specific)
            ?? takeRest(shape, variant, from: &general)
        change(&entry)
        guard let entry else { return }
        let step = Edge.Step.rest(shape, variant: variant, entry)
        let edge = Edge(rank: rest ?? .literal, key: Edge.Key(entry.pattern), step: step)
        rest == nil ? Self.insert(edge, into: &variantEnds) : insert(edge)
    }

    private func takeRest(
        _ shape: PathPattern.Shape, _ variant: Int, from edges: inout [Edge]
    ) -> RouteEntry? {
        let index = edges.firstIndex { if case .rest(shape, variant, _) = $0.step { true } else { false } }
        guard let index, case .rest(_, _, let entry) = edges.remove(at: index).step else { return nil }
        return entry
    }

    private func insert(_ edge: Edge) {
        edge.rank < .name ? Self.insert(edge, into: &specific) : Self.insert(edge, into: &general)
    }

    private static func insert(_ edge: Edge, into edges: inout [Edge]) {
        let index = edges.firstIndex { (edge.rank, edge.key) < ($0.rank, $0.key) }
        edges.insert(edge, at: index ?? edges.endIndex)
    }
}

// MARK: - Reading

extension PathTree {
    /// Returns the entry whose path has the same shape.
    func entry(like path: PathPattern) -> RouteEntry? { entry(like: path, behind: 0) }

    private func entry(like path: PathPattern, behind depth: Int) -> RouteEntry? {
        guard depth < path.segments.count else {
            if path.rest == nil, path.variants.isEmpty { return end }
            let shape = path.shape
            for edges in [variantEnds, specific, general] {
                for case .rest(shape, 0, let entry) in edges.lazy.map(\.step) { return entry }
            }
            return nil
        }
        let child = child(path.segments[depth])
        guard let entry = child?.entry else { return child?.tree?.entry(like: path, behind: depth + 1) }
        let isSame = entry.destination.segmentCount == path.segments.count && path.hasOnlyNames(behind: depth + 1)
        return isSame ? entry : nil
    }

    /// Returns the node after a segment of the same shape.
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

    /// Calls `body` with each entry, in no particular order.
    func visit(_ body: (RouteEntry) -> Void) { visitVariants { entry, variant in if variant == 0 { body(entry) } } }

    /// Calls `body` with each variant of each entry, in no particular order.
    fileprivate func visitVariants(_ body: (RouteEntry, _ variant: Int) -> Void) {
        if let end { body(end, 0) }
        literals.visit { $0.visitEntries(body) }
        name?.visitEntries(body)
        for edge in variantEnds + specific + general {
            switch edge.step {
            case .segment(_, _, let child): child.visitEntries(body)
            case .rest(_, let variant, let entry): body(entry, variant)
            }
        }
    }
}

extension PathPattern {
    fileprivate func hasOnlyNames(behind depth: Int) -> Bool {
        rest == nil && variants.isEmpty && segments[depth...].allSatisfy { if case .name = $0 { true } else { false } }
    }
}

extension PathNode {
    fileprivate func visitEntries(_ body: (RouteEntry, _ variant: Int) -> Void) {
        if let entry { body(entry, 0) } else { tree?.visitVariants(body) }
    }

    /// The first key of all patterns here and below.
    fileprivate var firstKey: PathTree.Edge.Key? {
        var first: PathTree.Edge.Key?
        visitEntries { entry, _ in
            let key = PathTree.Edge.Key(entry.pattern)
            first = min(first ?? key, key)
        }
        return first
    }
}
