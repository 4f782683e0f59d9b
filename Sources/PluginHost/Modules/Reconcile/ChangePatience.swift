import PluginABI
import Synchronization

/// How long a change waits for the hooks of modules. When it has continued without one, it waits at most a tenth of a
/// second for each of the others, so that the waits do not add up. May be used from any thread.
final class ChangePatience: Sendable {
    private let isOver = Atomic(false)

    /// Begins another change.
    func renew() { isOver.store(false, ordering: .relaxed) }

    /// Records that the change continues without a hook.
    func end() { isOver.store(true, ordering: .relaxed) }

    /// Returns how long to wait for the next hook.
    func time(_ configuration: HostConfiguration) -> Duration {
        isOver.load(ordering: .relaxed)
            ? min(configuration.hookPatience, .milliseconds(100)) : configuration.hookPatience
    }
}
