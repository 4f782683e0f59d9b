import PluginABI
import Synchronization

/// The result of a hook that has not returned in time, and what to do with it, which come in either order.
final class LateOutcome: Sendable {
    private typealias State = (
        outcome: Result<Void, PluginError>?, next: (@Sendable (Result<Void, PluginError>) -> Void)?
    )

    private let state = Mutex<State>((nil, nil))

    func take(_ outcome: Result<Void, PluginError>) {
        let next = state.withLock { state in
            state.outcome = outcome
            return state.next
        }
        next?(outcome)
    }

    func go(_ next: @escaping @Sendable (Result<Void, PluginError>) -> Void) {
        let outcome = state.withLock { state in
            state.next = next
            return state.outcome
        }
        if let outcome { next(outcome) }
    }
}
