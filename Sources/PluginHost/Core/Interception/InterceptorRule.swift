public import PluginABI
import PluginFile

/// A rule of the program's configuration that puts an interceptor of a module into effect for certain calls.
///
///     configuration.interceptors = [.init("Audit", "audit", for: .target("Shop"))]
///
/// A module only offers interceptors. Without a rule they see no calls.
public struct InterceptorRule: Sendable, Hashable, CustomStringConvertible {
    /// The name of the module.
    public var module: String
    /// The name of the interceptor in the module's manifest.
    public var name: String
    /// The calls that the interceptor sees.
    public var scope: InterceptionScope
    /// The priority; interceptors with a higher one are further out. Among interceptors of equal priority, rules are
    /// further out than those that the program adds with `intercept`, and the first rule is outermost.
    public var priority: Int
    /// Whether calls are made without the interceptor while the module is unavailable. Default: they end with
    /// ``/PluginABI/PluginError/Code/interceptorMissing``, because a missing interceptor would protect nothing.
    public var isOptional: Bool

    /// Creates a rule for an interceptor.
    ///
    /// - Parameters:
    ///   - module: The name of the module.
    ///   - name: The name of the interceptor in the module's manifest.
    ///   - scope: The calls that the interceptor sees.
    ///   - priority: The priority; interceptors with a higher one are further out.
    ///   - optional: Whether calls are made without the interceptor while the module is unavailable.
    public init(
        _ module: String, _ name: String, for scope: InterceptionScope = .all, priority: Int = 0,
        optional: Bool = false
    ) {
        (self.module, self.name, self.scope) = (module, name, scope)
        (self.priority, isOptional) = (priority, optional)
    }

    public var description: String { "\(name) of \(module), \(scope)" }

    /// The key in the table.
    var key: String { "\(module)~\(name)" }

    /// Creates a rule from its form in configuration files:
    /// `{"module": "Audit", "interceptor": "audit", "target": "Shop", "priority": 1, "optional": true}`. Instead of
    /// `target` it may contain `action` (`target/action`), `event` (a name) or `route` (a pattern), or none of them for
    /// all calls.
    ///
    /// - Throws: ``/PluginABI/PluginError/Code/invalidConfiguration``, naming the mistake.
    public init(_ value: Value) throws(PluginError) {
        let known = ["module", "interceptor", "target", "action", "event", "route", "priority", "optional"]
        guard let entries = value.map else { throw Self.error(value, "it is not an object") }
        if let unknown = entries.keys.sorted().first(where: { !known.contains($0) }) {
            throw Self.error(value, "“\(unknown.shortened)” is not a known key.\(didYouMean(unknown, known))")
        }
        guard let module = entries["module"]?.string, let name = entries["interceptor"]?.string else {
            throw Self.error(value, "“module” and “interceptor” are required and must be strings")
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
        try check(scheme: RoutePattern.unknownScheme)
    }

    private static func scope(_ entries: [String: Value], _ value: Value) throws(PluginError) -> InterceptionScope {
        let given = ["target", "action", "event", "route"].filter { entries[$0] != nil }
        guard let key = given.first else { return .all }
        guard given.count == 1, let text = entries[key]?.string else {
            throw error(
                value, "only one of “target”, “action”, “event” and “route” is allowed, and it must be a string")
        }
        switch key {
        case "target": return .target(text)
        case "event": return .event(text)
        case "route": return .route(text)
        default:
            guard let names = text.targetAndAction else {
                throw error(value, "“action” must have the form target/action")
            }
            return .action(names.target, names.action)
        }
    }

    /// - Parameter scheme: The scheme of a pattern that is written without one; `nil` if that is an error.
    /// - Throws: `invalidConfiguration` if the pattern of the rule's route is not valid.
    func check(scheme: String?) throws(PluginError) {
        guard case .route(let pattern) = scope else { return }
        do throws(PluginError) { _ = try RoutePattern(pattern, scheme: scheme) } catch {
            throw PluginError(
                .invalidConfiguration, "The interceptor \(self) is not valid. \(error.message)")
        }
    }

    private static func error(_ value: Value, _ what: String) -> PluginError {
        PluginError(.invalidConfiguration, "In the interceptor \(value.json.shortened): \(what).")
    }
}
