import PluginABI
import PluginFile

/// A route in the registry.
final class RouteEntry: PathNode, @unchecked Sendable {
    // Immutable, as is its destination; hence @unchecked Sendable.

    /// The data that almost every call needs.
    let destination: RouteDestination
    let pattern: RoutePattern
    /// Values for parameters that neither the caller nor the URL provides.
    let defaults: [String: Value]
    /// The name by which `url(for:)` finds the route; `nil` if it has none.
    let name: String?
    let summary: String
    /// How the page that the action makes is shown when the URL comes from outside.
    let transition: Transition
    let owner: Owner
    /// The module or the file whose route of the same pattern this one overrides.
    let overridden: Owner?
    /// The closure to which the route leads; `nil` if it leads to an action.
    let closure: RouteClosure?

    /// The module, file or program that a route comes from.
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

    /// - Parameter previous: The route that is registered before this one. Both share a destination if they can.
    convenience init(
        _ pattern: RoutePattern, target: String, action: String, closure: RouteClosure? = nil, name: String?,
        summary: String, defaults: [String: Value], transition: Transition = .none, owner: Owner,
        after previous: RouteEntry? = nil
    ) {
        let destination = RouteDestination.make(
            target, action, pattern, hasDefaults: !defaults.isEmpty, after: previous?.destination)
        self.init(
            pattern, destination, closure, name: name, summary: summary, defaults: defaults, transition: transition,
            owner: owner,
            overridden: nil)
    }

    private init(
        _ pattern: RoutePattern, _ destination: RouteDestination, _ closure: RouteClosure?, name: String?,
        summary: String, defaults: [String: Value], transition: Transition, owner: Owner, overridden: Owner?
    ) {
        self.closure = closure
        (self.pattern, self.destination, self.name, self.summary) = (pattern, destination, name, summary)
        (self.defaults, self.transition) = (defaults, transition)
        (self.owner, self.overridden) = (owner, overridden)
        super.init(isEntry: true)
    }

    var target: String { destination.address.target.text }
    var action: String { destination.address.action.text }

    /// Returns the captures of the groups in a URL that the route matches, if all groups are whole segments; otherwise
    /// an empty array.
    func taken(_ url: URLText) -> [RawText?] {
        destination.capturesWholeSegments ? destination.groups.map { url.segments[$0.segment] } : []
    }

    /// Returns the same route, marked as overriding the route of another owner.
    func overriding(_ other: Owner) -> RouteEntry {
        RouteEntry(
            pattern, destination, closure, name: name, summary: summary, defaults: defaults, transition: transition,
            owner: owner,
            overridden: other)
    }

    /// - Parameter action: The action in the form `target/action`.
    /// - Throws: `unknownAction` if `action` does not have this form.
    convenience init(
        _ pattern: RoutePattern, to action: String, name: String?, summary: String, defaults: [String: Value],
        transition: Transition = .none, owner: Owner, after previous: RouteEntry? = nil
    ) throws(PluginError) {
        let names = try action.actionOfRoute()
        self.init(
            pattern, target: names.target, action: names.action, name: name, summary: summary, defaults: defaults,
            transition: transition, owner: owner, after: previous)
    }

    /// Creates a route of the program that leads to a closure.
    convenience init(
        _ pattern: RoutePattern, to closure: RouteClosure, name: String?, summary: String, defaults: [String: Value]
    ) {
        self.init(
            pattern, target: "", action: "", closure: closure, name: name, summary: summary, defaults: defaults,
            owner: .program)
    }

    /// The action that the route leads to, for lists and messages.
    var destinationTitle: String { closure == nil ? "\(target)/\(action)" : "(closure)" }
}

extension RouteEntry.Owner {
    var isFile: Bool { if case .file = self { true } else { false } }
}
