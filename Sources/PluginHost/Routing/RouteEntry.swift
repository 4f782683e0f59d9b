import CPluginABI
import PluginABI
import PluginFile

/// One route as the registry has it.
final class RouteEntry: PathNode, @unchecked Sendable {
    // Immutable, and so is its destination; hence @unchecked Sendable.

    /// What almost every call needs of it.
    let destination: RouteDestination
    let pattern: RoutePattern
    /// Values for parameters that neither the caller nor the URL gives.
    let defaults: [String: Value]
    /// What `url(for:)` may call it by.
    let name: String?
    let summary: String
    let owner: Owner
    /// The module or the file whose route of the same pattern stands back for it.
    let overridden: Owner?

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

    /// - Parameter previous: The route that is registered before this one.
    convenience init(
        _ pattern: RoutePattern, target: String, action: String, name: String?, summary: String,
        defaults: [String: Value], owner: Owner, after previous: RouteEntry? = nil
    ) {
        let destination = RouteDestination.make(
            target, action, pattern, hasDefaults: !defaults.isEmpty, after: previous?.destination)
        self.init(
            pattern, destination, name: name, summary: summary, defaults: defaults, owner: owner, overridden: nil)
    }

    private init(
        _ pattern: RoutePattern, _ destination: RouteDestination, name: String?, summary: String,
        defaults: [String: Value], owner: Owner, overridden: Owner?
    ) {
        self.pattern = pattern
        self.destination = destination
        self.name = name
        self.summary = summary
        self.defaults = defaults
        self.owner = owner
        self.overridden = overridden
        super.init(isEntry: true)
    }

    var target: String { destination.address.target.text }
    var action: String { destination.address.action.text }

    /// What its groups take of a URL that it matches, where they are whole segments.
    func taken(_ url: URLText) -> [RawText?] {
        destination.hasPlaces ? destination.groups.map { url.segments[$0.place] } : []
    }

    /// The same route of another owner's.
    func overriding(_ other: Owner) -> RouteEntry {
        RouteEntry(
            pattern, destination, name: name, summary: summary, defaults: defaults, owner: owner, overridden: other)
    }

    /// - Parameter action: Written `target/action`.
    /// - Throws: `unknownAction` if it is not.
    convenience init(
        _ pattern: RoutePattern, to action: String, name: String?, summary: String, defaults: [String: Value],
        owner: Owner, after previous: RouteEntry? = nil
    ) throws(PluginError) {
        let names = try action.actionOfRoute()
        self.init(
            pattern, target: names.target, action: names.action, name: name, summary: summary, defaults: defaults,
            owner: owner, after: previous)
    }

}

extension RouteEntry.Owner {
    var isFile: Bool { if case .file = self { true } else { false } }
}
