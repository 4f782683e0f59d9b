import CPluginABI
import Glibc
import PluginABI

/// One route as the registry has it.
final class RouteEntry: @unchecked Sendable {
    // Immutable, and the owner of what its pointers point to; hence @unchecked Sendable.

    // First what a call reads, so that it stands together; the texts stand behind the groups.

    /// Target and action as the binary interface has them.
    let address: (target: plugin_string, action: plugin_string)
    /// The groups of the pattern, in their order.
    let groups: UnsafeBufferPointer<Group>
    /// Whether all groups are whole segments of the path.
    let hasPlaces: Bool
    /// Values for parameters that neither the caller nor the URL gives.
    let defaults: [String: Value]
    private let memory: UnsafeMutableRawPointer

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
        let names = pattern.names
        let start = names.count * MemoryLayout<Group>.stride
        memory = malloc(names.reduce(start + target.utf8.count + action.utf8.count) { $0 + $1.utf8.count })!
        var end = memory + start
        address = (plugin_string(copying: target, to: &end), plugin_string(copying: action, to: &end))
        let groups = UnsafeMutableBufferPointer(
            start: memory.bindMemory(to: Group.self, capacity: names.count), count: names.count)
        for (index, name) in names.enumerated() {
            let group = Group(name: plugin_string(copying: name, to: &end), place: pattern.places?[index] ?? 0)
            groups.initializeElement(at: index, to: group)
        }
        self.groups = UnsafeBufferPointer(groups)
        hasPlaces = pattern.places != nil
    }

    deinit { free(memory) }

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
