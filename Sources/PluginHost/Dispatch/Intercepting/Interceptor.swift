public import PluginABI

/// Which calls an interceptor sees. Callbacks, the program's own
/// handlers of events, and lifecycle hooks are seen by none.
public enum InterceptionScope: Sendable, Hashable, CustomStringConvertible {
    /// Every call, those on objects and those of events' subscribers included.
    case all
    /// Calls of a target's actions.
    case target(String)
    /// Calls of one action, by target and action.
    case action(String, String)
    /// Calls of the subscribers of an event, in modules.
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

/// An interceptor that was set up with `PluginHost.intercept`: what takes it away again.
public final class Interceptor: Sendable {
    private let id: UInt64
    private let dispatcher: Dispatcher

    init(_ id: UInt64, _ dispatcher: Dispatcher) { (self.id, self.dispatcher) = (id, dispatcher) }

    /// Takes it away. Calls that have begun still pass through it.
    public func remove() { dispatcher.removeInterceptor(id) }
}

extension PluginHost {
    /// The rest of a call: further interceptors, then the action. May be called any number of times, or not at all.
    public typealias Next = (InterceptedCall) throws -> Value
    /// The rest of a call, asynchronously.
    public typealias AsyncNext = (InterceptedCall) async throws -> Value

    /// Puts code around calls: it can read and change the parameters, answer itself, refuse by throwing, measure, try
    /// again.
    ///
    ///     host.intercept(.target("A")) { call, next in
    ///         var call = call
    ///         call.parameters["user"] = "Ada"
    ///         return try next(call)
    ///     }
    ///
    /// It runs on the thread of the call, also concurrently; around a call that does not run on the thread of its
    /// caller, on a thread that it may block. Calls that it makes itself are intercepted, too: one that calls without
    /// end what it is put around ends with ``/PluginABI/PluginError/Code/recursionLimit``. An intercepted call counts
    /// twice towards that limit. The deadline of the call includes it; when it runs past it, the log says so.
    ///
    /// - Parameters:
    ///   - scope: Which calls it sees.
    ///   - priority: The higher one is outside; of equal ones the one that was there first.
    ///   - body: Gets the call and the rest of it; what it returns or throws is the outcome.
    /// - Returns: What takes it away; it stays where that is dropped.
    @discardableResult
    public func intercept(
        _ scope: InterceptionScope, priority: Int = 0,
        _ body: @escaping @Sendable (_ call: InterceptedCall, _ next: Next) throws -> Value
    ) -> Interceptor {
        dispatcher.intercept(scope, priority, .synchronous(body))
    }

    /// Puts asynchronous code around calls. See ``intercept(_:priority:_:)``.
    ///
    /// A call that cannot wait for it (`perform`) ends with ``/PluginABI/PluginError/Code/asynchronousAction``.
    @discardableResult
    public func intercept(
        _ scope: InterceptionScope, priority: Int = 0,
        _ body: @escaping @Sendable (_ call: InterceptedCall, _ next: AsyncNext) async throws -> Value
    ) -> Interceptor {
        dispatcher.intercept(scope, priority, .asynchronous(body))
    }
}
