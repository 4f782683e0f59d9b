// A literal of parameters with a nested list or map of several types does not compile. By itself, the compiler says
// only that it cannot convert `[Any]`. The unavailable functions here match such literals, and say what to write.

extension HostContext {
    /// Refuses a literal with a nested list or map whose elements are of several types.
    @available(
        *, unavailable,
        message:
            "A nested list or map whose elements are of several types is written as a Value: [\"tags\": [\"red\", .int(n)] as Value]."
    )
    @_documentation(visibility: internal) @_disfavoredOverload @discardableResult
    public func perform(
        _ target: String, _ action: String, _ parameters: MixedParameters, timeout: Duration? = nil
    ) throws(PluginError) -> Value { fatalError() }

    /// Refuses a literal with a nested list or map whose elements are of several types.
    @available(
        *, unavailable,
        message:
            "A nested list or map whose elements are of several types is written as a Value: [\"tags\": [\"red\", .int(n)] as Value]."
    )
    @_documentation(visibility: internal) @_disfavoredOverload @discardableResult
    public func call(
        _ target: String, _ action: String, _ parameters: MixedParameters, timeout: Duration? = nil
    ) async throws(PluginError) -> Value { fatalError() }

    /// Refuses a literal with a nested list or map whose elements are of several types.
    @available(
        *, unavailable,
        message:
            "A nested list or map whose elements are of several types is written as a Value: [\"tags\": [\"red\", .int(n)] as Value]."
    )
    @_documentation(visibility: internal) @_disfavoredOverload @discardableResult
    public func performAndWait(
        _ target: String, _ action: String, _ parameters: MixedParameters, timeout: Duration
    ) throws(PluginError) -> Value { fatalError() }

    /// Refuses a literal with a nested list or map whose elements are of several types.
    @available(
        *, unavailable,
        message:
            "A nested list or map whose elements are of several types is written as a Value: [\"tags\": [\"red\", .int(n)] as Value]."
    )
    @_documentation(visibility: internal) @_disfavoredOverload @discardableResult
    public func open(
        _ url: String, _ parameters: MixedParameters, origin: CallOrigin = .local, timeout: Duration? = nil
    ) throws(PluginError) -> Value { fatalError() }

    /// Refuses a literal with a nested list or map whose elements are of several types.
    @available(
        *, unavailable,
        message:
            "A nested list or map whose elements are of several types is written as a Value: [\"tags\": [\"red\", .int(n)] as Value]."
    )
    @_documentation(visibility: internal) @_disfavoredOverload @discardableResult
    public func open(
        _ url: String, _ parameters: MixedParameters, origin: CallOrigin = .local, timeout: Duration? = nil
    ) async throws(PluginError) -> Value { fatalError() }

    /// Refuses a literal with a nested list or map whose elements are of several types.
    @available(
        *, unavailable,
        message:
            "A nested list or map whose elements are of several types is written as a Value: [\"tags\": [\"red\", .int(n)] as Value]."
    )
    @_documentation(visibility: internal) @_disfavoredOverload @discardableResult
    public func post(
        _ event: String, _ parameters: MixedParameters, sticky: Bool = false
    ) throws(PluginError) -> EventOutcome { fatalError() }

    /// Refuses a literal with a nested list or map whose elements are of several types.
    @available(
        *, unavailable,
        message:
            "A nested list or map whose elements are of several types is written as a Value: [\"tags\": [\"red\", .int(n)] as Value]."
    )
    @_documentation(visibility: internal) @_disfavoredOverload @discardableResult
    public func post(
        _ event: String, _ parameters: MixedParameters, sticky: Bool = false, timeout: Duration? = nil
    ) async throws(PluginError) -> EventOutcome { fatalError() }

    /// Refuses a literal with a nested list or map whose elements are of several types.
    @available(
        *, unavailable,
        message:
            "A nested list or map whose elements are of several types is written as a Value: [\"tags\": [\"red\", .int(n)] as Value]."
    )
    @_documentation(visibility: internal) @_disfavoredOverload @discardableResult
    public func emit(
        _ event: String, _ parameters: MixedParameters, from origin: Object? = nil
    ) throws(PluginError) -> ChainOutcome { fatalError() }

    /// Refuses a literal with a nested list or map whose elements are of several types.
    @available(
        *, unavailable,
        message:
            "A nested list or map whose elements are of several types is written as a Value: [\"tags\": [\"red\", .int(n)] as Value]."
    )
    @_documentation(visibility: internal) @_disfavoredOverload @discardableResult
    public func emit(
        _ event: String, _ parameters: MixedParameters, from origin: Object? = nil, timeout: Duration? = nil
    ) async throws(PluginError) -> ChainOutcome { fatalError() }

    /// Refuses a literal with a nested list or map whose elements are of several types.
    @available(
        *, unavailable,
        message:
            "A nested list or map whose elements are of several types is written as a Value: [\"tags\": [\"red\", .int(n)] as Value]."
    )
    @_documentation(visibility: internal) @_disfavoredOverload
    public func url(for route: String, _ parameters: MixedNamedValues) throws(PluginError) -> String { fatalError() }
}

extension Object {
    /// Refuses a literal with a nested list or map whose elements are of several types.
    @available(
        *, unavailable,
        message:
            "A nested list or map whose elements are of several types is written as a Value: [\"tags\": [\"red\", .int(n)] as Value]."
    )
    @_documentation(visibility: internal) @_disfavoredOverload @discardableResult
    public func perform(
        _ action: String, _ parameters: MixedParameters, in context: HostContext? = nil, timeout: Duration? = nil
    ) throws(PluginError) -> Value { fatalError() }

    /// Refuses a literal with a nested list or map whose elements are of several types.
    @available(
        *, unavailable,
        message:
            "A nested list or map whose elements are of several types is written as a Value: [\"tags\": [\"red\", .int(n)] as Value]."
    )
    @_documentation(visibility: internal) @_disfavoredOverload @discardableResult
    public func call(
        _ action: String, _ parameters: MixedParameters, in context: HostContext? = nil, timeout: Duration? = nil
    ) async throws(PluginError) -> Value { fatalError() }
}

extension ServiceHandle {
    /// Refuses a literal with a nested list or map whose elements are of several types.
    @available(
        *, unavailable,
        message:
            "A nested list or map whose elements are of several types is written as a Value: [\"tags\": [\"red\", .int(n)] as Value]."
    )
    @_documentation(visibility: internal) @_disfavoredOverload @discardableResult
    public func perform(
        _ action: String, _ parameters: MixedParameters, in context: HostContext? = nil, timeout: Duration? = nil
    ) throws(PluginError) -> Value { fatalError() }

    /// Refuses a literal with a nested list or map whose elements are of several types.
    @available(
        *, unavailable,
        message:
            "A nested list or map whose elements are of several types is written as a Value: [\"tags\": [\"red\", .int(n)] as Value]."
    )
    @_documentation(visibility: internal) @_disfavoredOverload @discardableResult
    public func call(
        _ action: String, _ parameters: MixedParameters, in context: HostContext? = nil, timeout: Duration? = nil
    ) async throws(PluginError) -> Value { fatalError() }
}

extension BoundAction {
    /// Refuses a literal with a nested list or map whose elements are of several types.
    @available(
        *, unavailable,
        message:
            "A nested list or map whose elements are of several types is written as a Value: [\"tags\": [\"red\", .int(n)] as Value]."
    )
    @_documentation(visibility: internal) @_disfavoredOverload @discardableResult
    public func perform(
        _ parameters: MixedParameters, in context: HostContext? = nil, timeout: Duration? = nil
    ) throws(PluginError) -> Value { fatalError() }

    /// Refuses a literal with a nested list or map whose elements are of several types.
    @available(
        *, unavailable,
        message:
            "A nested list or map whose elements are of several types is written as a Value: [\"tags\": [\"red\", .int(n)] as Value]."
    )
    @_documentation(visibility: internal) @_disfavoredOverload @discardableResult
    public func call(
        _ parameters: MixedParameters, in context: HostContext? = nil, timeout: Duration? = nil
    ) async throws(PluginError) -> Value { fatalError() }
}
