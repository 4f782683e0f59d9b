public import PluginABI

// The forms of `addRoute` for closures whose results cannot cross the boundary: they compile with a warning that says
// what to do, and throw. See UncrossableResults.swift of PluginABI.

extension PluginHost {
    /// Refuses a closure whose result cannot cross the boundary. Always throws.
    @available(
        *, deprecated,
        message:
            "A result of this type cannot be passed on. Make the type ValueCodable, convert it, or discard it with _ =."
    )
    @_documentation(visibility: internal) @_disfavoredOverload
    public func addRoute<R>(
        _ pattern: String, name: String? = nil, summary: String = "", defaults: NamedValues = [:],
        isRemote: Bool = false, requires demands: [String] = [], method: RouteMethod? = nil,
        _ body: @escaping @Sendable (_ parameters: [String: Value]) throws -> R
    ) throws(PluginError) { throw .uncrossable(R.self) }

    /// Refuses an asynchronous closure whose result cannot cross the boundary. Always throws.
    @available(
        *, deprecated,
        message:
            "A result of this type cannot be passed on. Make the type ValueCodable, convert it, or discard it with _ =."
    )
    @_documentation(visibility: internal) @_disfavoredOverload
    public func addRoute<R>(
        _ pattern: String, name: String? = nil, summary: String = "", defaults: NamedValues = [:],
        isRemote: Bool = false, requires demands: [String] = [], method: RouteMethod? = nil,
        _ body: @escaping @Sendable (_ parameters: [String: Value]) async throws -> R
    ) throws(PluginError) { throw .uncrossable(R.self) }
}
