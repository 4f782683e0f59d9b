import CPluginABI
import Glibc
import PluginABI

/// One route as the registry has it.
final class RouteEntry: PathNode, @unchecked Sendable {
    // Immutable, and the owner of what its pointers point to; hence @unchecked Sendable.

    // First what a call reads, in as few bytes as it takes: of many routes hardly one is in the processor's cache.

    /// Whether all groups are whole segments of the path.
    let hasPlaces: Bool
    /// How many segments of the path are decided alone: all of them, where no `*` or the like follows.
    let segmentCount: UInt16
    private let groupCount: UInt32
    /// The groups, then the texts of target and action, then the names of the groups.
    private let memory: UnsafeMutableRawPointer
    private let targetCount: UInt32
    private let actionCount: UInt32
    /// Values for parameters that neither the caller nor the URL gives.
    let defaults: [String: Value]

    let pattern: RoutePattern
    let target: String
    let action: String
    /// What `url(for:)` may call it by.
    let name: String?
    let summary: String
    let owner: Owner
    /// The module or the file whose route of the same pattern stands back for it.
    let overridden: Owner?

    /// A group of the pattern.
    struct Group {
        /// A number for one without a name.
        let name: plugin_string
        /// The segment of the path that it takes, where all groups are whole segments.
        let place: Int
    }

    /// Where a route comes from.
    enum Owner: Hashable, Sendable {
        case module(String)
        case file(String)
        case program

        var description: String {
            switch self {
            case .module(let name): "module \(name)"
            case .file(let path): "the file \(path)"
            case .program: "the program"
            }
        }
    }

    init(
        _ pattern: RoutePattern, target: String, action: String, name: String?, summary: String,
        defaults: [String: Value], owner: Owner, overridden: Owner? = nil
    ) {
        self.pattern = pattern
        self.target = target
        self.action = action
        self.name = name
        self.summary = summary
        self.defaults = defaults
        self.owner = owner
        self.overridden = overridden
        let (names, segments) = (pattern.names, pattern.path?.segments ?? [])
        hasPlaces = pattern.hasPlaces
        segmentCount = UInt16(segments.count)
        (groupCount, targetCount, actionCount) = (
            UInt32(names.count), UInt32(target.utf8.count), UInt32(action.utf8.count)
        )
        let start = names.count * MemoryLayout<Group>.stride
        memory = malloc(names.reduce(start + target.utf8.count + action.utf8.count) { $0 + $1.utf8.count })!
        var end = memory + start
        _ = plugin_string(copying: target, to: &end)
        _ = plugin_string(copying: action, to: &end)
        let groups = memory.bindMemory(to: Group.self, capacity: names.count)
        var places = segments.indices.lazy.filter { segments[$0].rank == .name }.makeIterator()
        for (index, name) in names.enumerated() {
            let place = hasPlaces ? places.next() ?? 0 : 0
            (groups + index).initialize(to: Group(name: plugin_string(copying: name, to: &end), place: place))
        }
        super.init(isEntry: true)
    }

    deinit { free(memory) }

    /// The groups of the pattern, in their order.
    @inline(__always)
    var groups: UnsafeBufferPointer<Group> {
        UnsafeBufferPointer(start: memory.assumingMemoryBound(to: Group.self), count: Int(groupCount))
    }

    /// Target and action as the binary interface has them.
    @inline(__always)
    var address: (target: plugin_string, action: plugin_string) {
        let start = (memory + Int(groupCount) * MemoryLayout<Group>.stride).assumingMemoryBound(to: CChar.self)
        return (
            plugin_string(bytes: start, count: UInt64(targetCount)),
            plugin_string(bytes: start + Int(targetCount), count: UInt64(actionCount))
        )
    }

    /// What its groups take of a URL that it matches, where they are whole segments.
    func taken(_ url: URLText) -> [RawText?] { hasPlaces ? groups.map { url.segments[$0.place] } : [] }

    /// The same route of another owner's.
    func overriding(_ other: Owner) -> RouteEntry {
        RouteEntry(
            pattern, target: target, action: action, name: name, summary: summary, defaults: defaults, owner: owner,
            overridden: other)
    }

    /// - Parameter action: Written `target/action`.
    /// - Throws: `unknownAction` if it is not.
    convenience init(
        _ pattern: RoutePattern, to action: String, name: String?, summary: String, defaults: [String: Value],
        owner: Owner
    ) throws(PluginError) {
        guard let names = action.targetAndAction else {
            throw PluginError(
                .unknownAction, "A route leads to an action, written target/action, not “\(action.shortened)”.")
        }
        self.init(
            pattern, target: names.target, action: names.action, name: name, summary: summary, defaults: defaults,
            owner: owner)
    }

    convenience init(_ route: ModuleManifest.Route, of module: String) {
        self.init(
            route.pattern, target: route.target, action: route.action, name: route.name, summary: route.summary,
            defaults: route.defaults, owner: .module(module))
    }
}

extension plugin_string {
    /// A copy at `end`, which is moved behind it.
    fileprivate init(copying text: String, to end: inout UnsafeMutableRawPointer) {
        var text = text
        self = text.withUTF8 { bytes in
            if let start = bytes.baseAddress { end.copyMemory(from: start, byteCount: bytes.count) }
            return plugin_string(bytes: end.assumingMemoryBound(to: CChar.self), count: UInt64(bytes.count))
        }
        end += Int(count)
    }
}

extension RouteEntry.Owner {
    var isFile: Bool { if case .file = self { true } else { false } }
}
