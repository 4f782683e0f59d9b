import PluginABI

/// An interceptor that was set up with `PluginHost.intercept`: what takes it away again.
public final class Interceptor: Sendable {
    private let id: UInt64
    private let calls: Calls

    init(_ id: UInt64, _ calls: Calls) { (self.id, self.calls) = (id, calls) }

    /// Takes it away. Calls that have begun still pass through it.
    public func remove() { calls.removeInterceptor(id) }
}
