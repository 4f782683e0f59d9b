import CPluginABI
public import PluginABI
import Synchronization

/// A call, as an interceptor sees it: after the host's checks (is it there, may other programs call it), before its
/// parameters are checked.
public struct InterceptedCall: Sendable {
    /// The target; of a call on an object the type.
    public let target: String
    /// The action.
    public let action: String
    /// The parameters by name, as given; defaults come later. What `next` gets instead, the action gets.
    public var parameters: [String: Value]
    /// Where the call comes from.
    public let origin: CallOrigin
    /// The pattern of the route that led here; nil where the call came in another way.
    public let route: String?
    /// The host, for calls that are made for this one.
    public let context: HostContext
}

/// Which calls an interceptor sees. Callbacks and lifecycle hooks are seen by none.
public enum InterceptionScope: Sendable, Hashable, CustomStringConvertible {
    /// Every call, those on objects included.
    case all
    /// Calls of a target's actions.
    case target(String)
    /// Calls of one action, by target and action.
    case action(String, String)
    /// Calls by URLs that match the route with this pattern.
    case route(String)

    public var description: String {
        switch self {
        case .all: "for all calls"
        case .target(let target): "for the target \(target)"
        case .action(let target, let action): "for \(target)/\(action)"
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
    public func remove() { dispatcher.updateInterceptors { $0.removeAll { $0.id == self.id } } }
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

extension Table {
    func with(_ interception: Interception?) -> Table {
        Table(generations, routes: routes, interception: interception, isStopped: isStopped)
    }
}

/// The interceptors of a table, in the order in which calls pass them. Immutable.
final class Interception: Sendable {
    let entries: [Entry]

    init(_ entries: [Entry]) { self.entries = entries }

    struct Entry: Sendable {
        let id: UInt64
        let scope: InterceptionScope
        /// Of the pattern, if the scope is a route.
        let shape: RoutePattern.Shape?
        let priority: Int
        let body: Body
    }

    enum Body: Sendable {
        case synchronous(@Sendable (InterceptedCall, PluginHost.Next) throws -> Value)
        case asynchronous(@Sendable (InterceptedCall, PluginHost.AsyncNext) async throws -> Value)

        var isAsync: Bool { if case .asynchronous = self { true } else { false } }
    }

    func matching(_ endpoint: Endpoint, _ route: RouteEntry?) -> [Entry] {
        if endpoint.isVariadic { return [] }
        return entries.filter { entry in
            switch entry.scope {
            case .all: true
            case .target(let target): endpoint.name.hasPrefix("\(target)/")
            case .action(let target, let action): endpoint.name == "\(target)/\(action)"
            case .route: entry.shape != nil && route?.pattern.shape == entry.shape
            }
        }
    }
}

extension Dispatcher {
    fileprivate func intercept(
        _ scope: InterceptionScope, _ priority: Int, _ body: Interception.Body
    ) -> Interceptor {
        var shape: RoutePattern.Shape?
        if case .route(let pattern) = scope {
            shape = (try? RoutePattern(pattern))?.shape
            if shape == nil {
                settings.log(
                    LogEntry(
                        level: .warning, message: "An interceptor \(scope) sees no calls: that is no pattern."))
            }
        }
        let id = Self.lastInterceptor.add(1, ordering: .relaxed).newValue
        updateInterceptors { entries in
            let place = entries.firstIndex { $0.priority < priority } ?? entries.endIndex
            entries.insert(.init(id: id, scope: scope, shape: shape, priority: priority, body: body), at: place)
        }
        return Interceptor(id, self)
    }

    private static let lastInterceptor = Atomic<UInt64>(0)

    fileprivate func updateInterceptors(_ change: (inout [Interception.Entry]) -> Void) {
        try? registry.update { table in
            var entries = table.interception?.entries ?? []
            change(&entries)
            isIntercepting.store(!entries.isEmpty, ordering: .relaxed)
            return table.with(entries.isEmpty ? nil : Interception(entries))
        }
    }
}
