/// A handle to an interceptor that was added with `PluginHost.intercept`, by which it can be removed.
public final class Interceptor: Sendable {
    private let id: UInt64
    private let calls: Calls

    init(_ id: UInt64, _ calls: Calls) { (self.id, self.calls) = (id, calls) }

    /// Removes the interceptor. Calls that have begun still pass through it.
    public func remove() { calls.removeInterceptor(id) }
}
