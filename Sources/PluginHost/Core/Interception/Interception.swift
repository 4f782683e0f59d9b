import PluginABI

/// The interceptors of a table, in the order in which calls pass through them. Immutable.
final class Interception: Sendable {
    let entries: [Entry]

    init(_ entries: [Entry]) { self.entries = entries }

    struct Entry: Sendable {
        let id: UInt64
        let scope: InterceptionScope
        /// The shape of the pattern, if the scope is a route.
        let shape: RoutePattern.Shape?
        let priority: Int
        let body: Body

        /// The rule of the configuration; `nil` for code of the program.
        var rule: InterceptorRule? { if case .module(let rule) = body { rule } else { nil } }

        /// The title in messages.
        var title: String { rule.map(\.description) ?? "\(scope)" }
    }

    enum Body: Sendable {
        case synchronous(@Sendable (InterceptedCall, (InterceptedCall) throws -> Value) throws -> Value)
        case asynchronous(@Sendable (InterceptedCall, (InterceptedCall) async throws -> Value) async throws -> Value)
        /// The interceptor that a rule names, looked up at each call in the table that is current then.
        case module(InterceptorRule)

        func isAsync(in table: Table) -> Bool {
            switch self {
            case .synchronous: false
            case .asynchronous: true
            case .module(let rule): table.interceptors[rule.key]?.isAsync ?? false
            }
        }
    }

    func matching(_ endpoint: Endpoint, _ route: RouteEntry?) -> [Entry] {
        if endpoint.isVariadic { return [] }
        return entries.filter { entry in
            switch entry.scope {
            case .all: true
            case .target(let target): endpoint.name.hasPrefix("\(target)/")
            case .action(let target, let action): endpoint.name == "\(target)/\(action)"
            case .event(let event): endpoint.event == event
            case .route: entry.shape != nil && route?.pattern.shape == entry.shape
            }
        }
    }
}

extension Interception {
    /// Returns whether any interceptor that sees calls of an endpoint made without a URL is asynchronous.
    func isAsync(around endpoint: Endpoint, in table: Table) -> Bool {
        matching(endpoint, nil).contains { $0.body.isAsync(in: table) }
    }
}
