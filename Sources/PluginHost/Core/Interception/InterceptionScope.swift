/// The calls that an interceptor sees. No interceptor sees callbacks, the program's own event handlers, or lifecycle
/// hooks.
public enum InterceptionScope: Sendable, Hashable, CustomStringConvertible {
    /// Every call, including calls of actions of objects and of event subscribers in modules.
    case all
    /// Calls of a target's actions.
    case target(String)
    /// Calls of one action, by target and action.
    case action(String, String)
    /// Calls of the subscribers of an event in modules.
    case event(String)
    /// Calls by URLs that match the route with this pattern.
    case route(String)

    public var description: String {
        switch self {
        case .all: "for all calls"
        case .target(let target): "for the target \(target)"
        case .action(let target, let action): "for \(target)/\(action)"
        case .event(let event): "for the event \(event)"
        case .route(let pattern): "for the route “\(pattern)”"
        }
    }
}
