public import PluginABI
import Synchronization

/// What the page shows of the fleet that the host is a part of.
final class PageFleet: Sendable {
    private let shown = Mutex(Value.null)

    /// `null` if the host is in no fleet.
    var value: Value {
        get { shown.withLock { $0 } }
        set { shown.withLock { $0 = newValue } }
    }
}

extension PluginGateway {
    /// Shows a fleet on the page until the next call.
    ///
    /// - Parameter fleet: A map, as `pluginhost-gateway fleet status --json` prints it, with the name of this host as
    ///   `self`, and with `isKnown`, which is false if the fleet is not known at the moment.
    public func showFleet(_ fleet: Value) { pageFleet.value = fleet }
}
