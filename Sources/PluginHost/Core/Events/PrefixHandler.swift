import PluginABI
import PluginFile

/// An action of an object type or of a target that handles all events of the chain whose names begin with a prefix.
struct PrefixHandler: Sendable {
    /// The beginning of the events' names; empty for all events.
    let prefix: String
    /// The name of the target or of the object type.
    let owner: String
    let action: String
    let endpoint: Endpoint

    /// Returns whether an event has the prefix, compared by bytes.
    func handles(_ event: String) -> Bool { event.utf8.starts(with: prefix.utf8) }
}

extension [PrefixHandler] {
    /// Adds the handlers for those actions that handle events by prefix.
    mutating func append(
        _ actions: [ModuleManifest.Action], of owner: String, _ endpoints: [String: Endpoint]
    ) {
        for action in actions {
            guard let prefix = action.handles, let endpoint = endpoints[action.name] else { continue }
            append(PrefixHandler(prefix: prefix, owner: owner, action: action.name, endpoint: endpoint))
        }
    }

    /// The handlers in the order in which they are called: those with longer prefixes first.
    var inOrder: [PrefixHandler] {
        // The sort is not guaranteed to be stable, hence the index.
        enumerated().sorted { ($1.element.prefix.utf8.count, $0.offset) < ($0.element.prefix.utf8.count, $1.offset) }
            .map(\.element)
    }
}
