public import PluginABI

// Overloads for literals that mix types in a nested list or map; see MixedCalls.swift in Host.

extension Navigator {
    /// Refuses a literal with a nested list or map whose elements are of several types.
    @available(
        *, unavailable,
        message:
            "A nested list or map whose elements are of several types is written as a Value: [\"tags\": [\"red\", .int(n)] as Value]."
    )
    @_documentation(visibility: internal) @_disfavoredOverload @discardableResult
    public func open(
        _ url: String, _ parameters: MixedNamedValues, by transition: Transition = .push,
        origin: CallOrigin = .local, onClose: Completion? = nil
    ) async throws(PluginError) -> OpenPage { fatalError() }

    /// Refuses a literal with a nested list or map whose elements are of several types.
    @available(
        *, unavailable,
        message:
            "A nested list or map whose elements are of several types is written as a Value: [\"tags\": [\"red\", .int(n)] as Value]."
    )
    @_documentation(visibility: internal) @_disfavoredOverload @discardableResult
    public func open(
        _ target: String, _ action: String, _ parameters: MixedNamedValues, by transition: Transition = .push,
        onClose: Completion? = nil
    ) async throws(PluginError) -> OpenPage { fatalError() }

    /// Refuses a literal with a nested list or map whose elements are of several types.
    @available(
        *, unavailable,
        message:
            "A nested list or map whose elements are of several types is written as a Value: [\"tags\": [\"red\", .int(n)] as Value]."
    )
    @_documentation(visibility: internal) @_disfavoredOverload @discardableResult
    public func open(
        page: Object, _ parameters: MixedNamedValues, by transition: Transition = .push,
        onClose: Completion? = nil
    ) async throws(PluginError) -> OpenPage { fatalError() }
}
