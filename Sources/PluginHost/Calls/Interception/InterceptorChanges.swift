import PluginABI
import Synchronization

extension Calls {
    /// Adds an interceptor of the program.
    func intercept(_ scope: InterceptionScope, _ priority: Int, _ body: Interception.Body) -> Interceptor {
        let entry = self.entry(scope, priority, body)
        if case .route = scope, entry.shape == nil {
            settings.log(
                LogEntry(
                    level: .warning, message: "The interceptor \(scope) sees no calls: the pattern is not valid."))
        }
        updateInterceptors { entries in
            let index = entries.firstIndex { $0.priority < priority } ?? entries.endIndex
            entries.insert(entry, at: index)
        }
        return Interceptor(entry.id, self)
    }

    /// Replaces the interceptors of the configuration. A rule that is also among the new ones keeps its counts.
    func setInterceptors(_ rules: [InterceptorRule]) {
        updateInterceptors { entries in
            var old = entries.filter { $0.rule != nil }
            entries.removeAll { $0.rule != nil }
            for rule in rules {
                let index =
                    entries.firstIndex {
                        $0.priority < rule.priority || ($0.priority == rule.priority && $0.rule == nil)
                    }
                    ?? entries.endIndex
                let kept = old.firstIndex { $0.rule == rule }.map { old.remove(at: $0) }
                entries.insert(kept ?? entry(rule.scope, rule.priority, .module(rule)), at: index)
            }
            for entry in old { core.interceptorTimes.forget(entry.id) }
        }
    }

    private func entry(
        _ scope: InterceptionScope, _ priority: Int, _ body: Interception.Body
    ) -> Interception.Entry {
        var shape: RoutePattern.Shape?
        if case .route(let pattern) = scope {
            shape = (try? RoutePattern(pattern, scheme: settings.firstScheme))?.shape
        }
        let id = Self.lastInterceptor.add(1, ordering: .relaxed).newValue
        return .init(id: id, scope: scope, shape: shape, priority: priority, body: body)
    }

    private static let lastInterceptor = Atomic<UInt64>(0)

    func removeInterceptor(_ id: UInt64) {
        updateInterceptors { $0.removeAll { $0.id == id } }
        core.interceptorTimes.forget(id)
    }

    private func updateInterceptors(_ change: (inout [Interception.Entry]) -> Void) {
        try? registry.update { table in
            let present = table.interception?.entries ?? []
            var entries = present
            change(&entries)
            core.isIntercepting.store(!entries.isEmpty, ordering: .relaxed)
            return table.changed { $0.interception = entries.isEmpty ? nil : Interception(entries) }
        }
    }
}
