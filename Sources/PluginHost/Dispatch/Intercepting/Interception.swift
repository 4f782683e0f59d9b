import PluginABI
import Synchronization

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

        /// What the configuration says about it; nil for code of the program.
        var rule: InterceptorRule? { if case .module(let rule) = body { rule } else { nil } }

        /// As messages name it.
        var title: String { rule.map(\.description) ?? "\(scope)" }
    }

    enum Body: Sendable {
        case synchronous(@Sendable (InterceptedCall, PluginHost.Next) throws -> Value)
        case asynchronous(@Sendable (InterceptedCall, PluginHost.AsyncNext) async throws -> Value)
        /// Whatever the table of the moment has under the name.
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
    /// Whether one of those that see calls of an endpoint without a URL is asynchronous.
    func isAsync(around endpoint: Endpoint, in table: Table) -> Bool {
        matching(endpoint, nil).contains { $0.body.isAsync(in: table) }
    }
}

extension Dispatcher {
    /// Adds code of the program.
    func intercept(_ scope: InterceptionScope, _ priority: Int, _ body: Interception.Body) -> Interceptor {
        let entry = Self.entry(scope, priority, body)
        if case .route = scope, entry.shape == nil {
            settings.log(
                LogEntry(level: .warning, message: "An interceptor \(scope) sees no calls: that is no pattern."))
        }
        updateInterceptors { entries in
            let place = entries.firstIndex { $0.priority < priority } ?? entries.endIndex
            entries.insert(entry, at: place)
        }
        return Interceptor(entry.id, self)
    }

    /// Replaces what the configuration names. A rule that stays keeps its counts.
    func setInterceptors(_ rules: [InterceptorRule]) {
        updateInterceptors { entries in
            var old = entries.filter { $0.rule != nil }
            entries.removeAll { $0.rule != nil }
            for rule in rules {
                let place =
                    entries.firstIndex {
                        $0.priority < rule.priority || ($0.priority == rule.priority && $0.rule == nil)
                    }
                    ?? entries.endIndex
                let kept = old.firstIndex { $0.rule == rule }.map { old.remove(at: $0) }
                entries.insert(kept ?? Self.entry(rule.scope, rule.priority, .module(rule)), at: place)
            }
            for entry in old { interceptorTimes.forget(entry.id) }
        }
    }

    private static func entry(
        _ scope: InterceptionScope, _ priority: Int, _ body: Interception.Body
    ) -> Interception.Entry {
        var shape: RoutePattern.Shape?
        if case .route(let pattern) = scope { shape = (try? RoutePattern(pattern))?.shape }
        let id = lastInterceptor.add(1, ordering: .relaxed).newValue
        return .init(id: id, scope: scope, shape: shape, priority: priority, body: body)
    }

    private static let lastInterceptor = Atomic<UInt64>(0)

    func removeInterceptor(_ id: UInt64) {
        updateInterceptors { $0.removeAll { $0.id == id } }
        interceptorTimes.forget(id)
    }

    private func updateInterceptors(_ change: (inout [Interception.Entry]) -> Void) {
        try? registry.update { table in
            let present = table.interception?.entries ?? []
            var entries = present
            change(&entries)
            isIntercepting.store(!entries.isEmpty, ordering: .relaxed)
            return table.changed { $0.interception = entries.isEmpty ? nil : Interception(entries) }
        }
    }
}
