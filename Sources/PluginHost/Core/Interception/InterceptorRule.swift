public import PluginABI
import PluginFile

/// An interceptor of a module that takes effect, and for which calls: what the program's configuration says.
///
///     configuration.interceptors = [.init("Audit", "audit", for: .target("Shop"))]
///
/// A module only offers interceptors. Without a rule they see nothing.
public struct InterceptorRule: Sendable, Hashable, CustomStringConvertible {
    /// The name of the module.
    public var module: String
    /// What the module's manifest calls the interceptor.
    public var name: String
    /// Which calls it sees.
    public var scope: InterceptionScope
    /// The higher one is outside. Of equal ones the rules stand outside of what the program adds with `intercept`, in
    /// their own order.
    public var priority: Int
    /// Whether calls pass while the module is not there. Default: they end with
    /// ``/PluginABI/PluginError/Code/interceptorMissing``, since a guard that is missing guards nothing.
    public var isOptional: Bool

    /// Names an interceptor.
    ///
    /// - Parameters:
    ///   - module: The name of the module.
    ///   - name: What its manifest calls the interceptor.
    ///   - scope: Which calls it sees.
    ///   - priority: The higher one is outside.
    ///   - optional: Whether calls pass while the module is not there.
    public init(
        _ module: String, _ name: String, for scope: InterceptionScope = .all, priority: Int = 0,
        optional: Bool = false
    ) {
        (self.module, self.name, self.scope) = (module, name, scope)
        (self.priority, isOptional) = (priority, optional)
    }

    public var description: String { "\(name) of \(module), \(scope)" }

    /// How the table knows it.
    var key: String { "\(module)~\(name)" }
}

extension InterceptorRule {
    /// Reads a rule as configuration files have it:
    /// `{"module": "Audit", "interceptor": "audit", "target": "Shop", "priority": 1, "optional": true}`. Instead of
    /// `target` there can be `action` (`target/action`), `event` (a name) or `route` (a pattern), or none of them, for
    /// all calls.
    ///
    /// - Throws: ``/PluginABI/PluginError/Code/invalidConfiguration``, naming what is wrong.
    public init(_ value: Value) throws(PluginError) {
        let known = ["module", "interceptor", "target", "action", "event", "route", "priority", "optional"]
        guard let entries = value.map else { throw Self.error(value, "it is no object") }
        if let unknown = entries.keys.sorted().first(where: { !known.contains($0) }) {
            throw Self.error(value, "there is no “\(unknown.shortened)”.\(didYouMean(unknown, known))")
        }
        guard let module = entries["module"]?.string, let name = entries["interceptor"]?.string else {
            throw Self.error(value, "“module” and “interceptor” must be there, and strings")
        }
        self.init(module, name, for: try Self.scope(entries, value))
        if let given = entries["priority"] {
            guard let priority = given.int else { throw Self.error(value, "“priority” must be a whole number") }
            self.priority = priority
        }
        if let given = entries["optional"] {
            guard let isOptional = given.bool else { throw Self.error(value, "“optional” must be true or false") }
            self.isOptional = isOptional
        }
        try check()
    }

    private static func scope(_ entries: [String: Value], _ value: Value) throws(PluginError) -> InterceptionScope {
        let given = ["target", "action", "event", "route"].filter { entries[$0] != nil }
        guard let key = given.first else { return .all }
        guard given.count == 1, let text = entries[key]?.string else {
            throw error(value, "only one of “target”, “action”, “event” and “route” can be there, as a string")
        }
        switch key {
        case "target": return .target(text)
        case "event": return .event(text)
        case "route": return .route(text)
        default:
            guard let names = text.targetAndAction else { throw error(value, "“action” must be written target/action") }
            return .action(names.target, names.action)
        }
    }

    /// - Throws: `invalidConfiguration` for a rule that would guard nothing.
    func check() throws(PluginError) {
        guard case .route(let pattern) = scope else { return }
        do throws(PluginError) { _ = try RoutePattern(pattern) } catch {
            throw PluginError(
                .invalidConfiguration, "The interceptor \(self) cannot stand there. \(error.message)")
        }
    }

    private static func error(_ value: Value, _ what: String) -> PluginError {
        PluginError(.invalidConfiguration, "In the interceptor \(value.json.shortened): \(what).")
    }
}
