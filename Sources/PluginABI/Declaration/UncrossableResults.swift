// The initialisers of `Action` for closures whose results cannot cross the boundary. They turn a mistake that would
// lose the result into a compile error: `Action` without `try` does not compile, and the deprecation says what to do.
//
// Swift lets a closure of one line drop its result where `Void` is expected. An overload that is unavailable would
// therefore lose to the initialisers for closures without a result; one that is deprecated wins.

extension Action {
    /// Refuses a closure with no input whose result cannot cross the boundary. Always throws.
    @available(
        *, deprecated,
        message:
            "A result of this type cannot be passed on. Make the type ValueCodable, convert it, or discard it with _ =."
    )
    @_disfavoredOverload
    public init<R>(
        _ name: String,
        _ body: @escaping @Sendable () throws -> R
    ) throws(PluginError) { throw .uncrossable(R.self) }

    /// Refuses a closure with one input whose result cannot cross the boundary. Always throws.
    @available(
        *, deprecated,
        message:
            "A result of this type cannot be passed on. Make the type ValueCodable, convert it, or discard it with _ =."
    )
    @_disfavoredOverload
    public init<A, R>(
        _ name: String, _ a: some ActionInput<Instance, A>,
        _ body: @escaping @Sendable (A) throws -> R
    ) throws(PluginError) { throw .uncrossable(R.self) }

    /// Refuses a closure with two inputs whose result cannot cross the boundary. Always throws.
    @available(
        *, deprecated,
        message:
            "A result of this type cannot be passed on. Make the type ValueCodable, convert it, or discard it with _ =."
    )
    @_disfavoredOverload
    public init<A, B, R>(
        _ name: String, _ a: some ActionInput<Instance, A>, _ b: some ActionInput<Instance, B>,
        _ body: @escaping @Sendable (A, B) throws -> R
    ) throws(PluginError) { throw .uncrossable(R.self) }

    /// Refuses a closure with three inputs whose result cannot cross the boundary. Always throws.
    @available(
        *, deprecated,
        message:
            "A result of this type cannot be passed on. Make the type ValueCodable, convert it, or discard it with _ =."
    )
    @_disfavoredOverload
    public init<A, B, C, R>(
        _ name: String, _ a: some ActionInput<Instance, A>, _ b: some ActionInput<Instance, B>,
        _ c: some ActionInput<Instance, C>,
        _ body: @escaping @Sendable (A, B, C) throws -> R
    ) throws(PluginError) { throw .uncrossable(R.self) }

    /// Refuses a closure with four inputs whose result cannot cross the boundary. Always throws.
    @available(
        *, deprecated,
        message:
            "A result of this type cannot be passed on. Make the type ValueCodable, convert it, or discard it with _ =."
    )
    @_disfavoredOverload
    public init<A, B, C, D, R>(
        _ name: String, _ a: some ActionInput<Instance, A>, _ b: some ActionInput<Instance, B>,
        _ c: some ActionInput<Instance, C>, _ d: some ActionInput<Instance, D>,
        _ body: @escaping @Sendable (A, B, C, D) throws -> R
    ) throws(PluginError) { throw .uncrossable(R.self) }

    /// Refuses a closure with five inputs whose result cannot cross the boundary. Always throws.
    @available(
        *, deprecated,
        message:
            "A result of this type cannot be passed on. Make the type ValueCodable, convert it, or discard it with _ =."
    )
    @_disfavoredOverload
    public init<A, B, C, D, E, R>(
        _ name: String, _ a: some ActionInput<Instance, A>, _ b: some ActionInput<Instance, B>,
        _ c: some ActionInput<Instance, C>, _ d: some ActionInput<Instance, D>, _ e: some ActionInput<Instance, E>,
        _ body: @escaping @Sendable (A, B, C, D, E) throws -> R
    ) throws(PluginError) { throw .uncrossable(R.self) }

    /// Refuses a closure with six inputs whose result cannot cross the boundary. Always throws.
    @available(
        *, deprecated,
        message:
            "A result of this type cannot be passed on. Make the type ValueCodable, convert it, or discard it with _ =."
    )
    @_disfavoredOverload
    public init<A, B, C, D, E, F, R>(
        _ name: String, _ a: some ActionInput<Instance, A>, _ b: some ActionInput<Instance, B>,
        _ c: some ActionInput<Instance, C>, _ d: some ActionInput<Instance, D>, _ e: some ActionInput<Instance, E>,
        _ f: some ActionInput<Instance, F>,
        _ body: @escaping @Sendable (A, B, C, D, E, F) throws -> R
    ) throws(PluginError) { throw .uncrossable(R.self) }

    /// Refuses a closure with seven inputs whose result cannot cross the boundary. Always throws.
    @available(
        *, deprecated,
        message:
            "A result of this type cannot be passed on. Make the type ValueCodable, convert it, or discard it with _ =."
    )
    @_disfavoredOverload
    public init<A, B, C, D, E, F, G, R>(
        _ name: String, _ a: some ActionInput<Instance, A>, _ b: some ActionInput<Instance, B>,
        _ c: some ActionInput<Instance, C>, _ d: some ActionInput<Instance, D>, _ e: some ActionInput<Instance, E>,
        _ f: some ActionInput<Instance, F>, _ g: some ActionInput<Instance, G>,
        _ body: @escaping @Sendable (A, B, C, D, E, F, G) throws -> R
    ) throws(PluginError) { throw .uncrossable(R.self) }

    /// Refuses a closure with eight inputs whose result cannot cross the boundary. Always throws.
    @available(
        *, deprecated,
        message:
            "A result of this type cannot be passed on. Make the type ValueCodable, convert it, or discard it with _ =."
    )
    @_disfavoredOverload
    public init<A, B, C, D, E, F, G, H, R>(
        _ name: String, _ a: some ActionInput<Instance, A>, _ b: some ActionInput<Instance, B>,
        _ c: some ActionInput<Instance, C>, _ d: some ActionInput<Instance, D>, _ e: some ActionInput<Instance, E>,
        _ f: some ActionInput<Instance, F>, _ g: some ActionInput<Instance, G>, _ h: some ActionInput<Instance, H>,
        _ body: @escaping @Sendable (A, B, C, D, E, F, G, H) throws -> R
    ) throws(PluginError) { throw .uncrossable(R.self) }

    /// Refuses a closure with no input whose result cannot cross the boundary. Always throws.
    @available(
        *, deprecated,
        message:
            "A result of this type cannot be passed on. Make the type ValueCodable, convert it, or discard it with _ =."
    )
    @_disfavoredOverload
    public init<R>(
        _ name: String,
        _ body: @escaping @Sendable () async throws -> R
    ) throws(PluginError) { throw .uncrossable(R.self) }

    /// Refuses a closure with one input whose result cannot cross the boundary. Always throws.
    @available(
        *, deprecated,
        message:
            "A result of this type cannot be passed on. Make the type ValueCodable, convert it, or discard it with _ =."
    )
    @_disfavoredOverload
    public init<A: Sendable, R>(
        _ name: String, _ a: some ActionInput<Instance, A>,
        _ body: @escaping @Sendable (A) async throws -> R
    ) throws(PluginError) { throw .uncrossable(R.self) }

    /// Refuses a closure with two inputs whose result cannot cross the boundary. Always throws.
    @available(
        *, deprecated,
        message:
            "A result of this type cannot be passed on. Make the type ValueCodable, convert it, or discard it with _ =."
    )
    @_disfavoredOverload
    public init<A: Sendable, B: Sendable, R>(
        _ name: String, _ a: some ActionInput<Instance, A>, _ b: some ActionInput<Instance, B>,
        _ body: @escaping @Sendable (A, B) async throws -> R
    ) throws(PluginError) { throw .uncrossable(R.self) }

    /// Refuses a closure with three inputs whose result cannot cross the boundary. Always throws.
    @available(
        *, deprecated,
        message:
            "A result of this type cannot be passed on. Make the type ValueCodable, convert it, or discard it with _ =."
    )
    @_disfavoredOverload
    public init<A: Sendable, B: Sendable, C: Sendable, R>(
        _ name: String, _ a: some ActionInput<Instance, A>, _ b: some ActionInput<Instance, B>,
        _ c: some ActionInput<Instance, C>,
        _ body: @escaping @Sendable (A, B, C) async throws -> R
    ) throws(PluginError) { throw .uncrossable(R.self) }

    /// Refuses a closure with four inputs whose result cannot cross the boundary. Always throws.
    @available(
        *, deprecated,
        message:
            "A result of this type cannot be passed on. Make the type ValueCodable, convert it, or discard it with _ =."
    )
    @_disfavoredOverload
    public init<A: Sendable, B: Sendable, C: Sendable, D: Sendable, R>(
        _ name: String, _ a: some ActionInput<Instance, A>, _ b: some ActionInput<Instance, B>,
        _ c: some ActionInput<Instance, C>, _ d: some ActionInput<Instance, D>,
        _ body: @escaping @Sendable (A, B, C, D) async throws -> R
    ) throws(PluginError) { throw .uncrossable(R.self) }

    /// Refuses a closure with five inputs whose result cannot cross the boundary. Always throws.
    @available(
        *, deprecated,
        message:
            "A result of this type cannot be passed on. Make the type ValueCodable, convert it, or discard it with _ =."
    )
    @_disfavoredOverload
    public init<A: Sendable, B: Sendable, C: Sendable, D: Sendable, E: Sendable, R>(
        _ name: String, _ a: some ActionInput<Instance, A>, _ b: some ActionInput<Instance, B>,
        _ c: some ActionInput<Instance, C>, _ d: some ActionInput<Instance, D>, _ e: some ActionInput<Instance, E>,
        _ body: @escaping @Sendable (A, B, C, D, E) async throws -> R
    ) throws(PluginError) { throw .uncrossable(R.self) }

    /// Refuses a closure with six inputs whose result cannot cross the boundary. Always throws.
    @available(
        *, deprecated,
        message:
            "A result of this type cannot be passed on. Make the type ValueCodable, convert it, or discard it with _ =."
    )
    @_disfavoredOverload
    public init<A: Sendable, B: Sendable, C: Sendable, D: Sendable, E: Sendable, F: Sendable, R>(
        _ name: String, _ a: some ActionInput<Instance, A>, _ b: some ActionInput<Instance, B>,
        _ c: some ActionInput<Instance, C>, _ d: some ActionInput<Instance, D>, _ e: some ActionInput<Instance, E>,
        _ f: some ActionInput<Instance, F>,
        _ body: @escaping @Sendable (A, B, C, D, E, F) async throws -> R
    ) throws(PluginError) { throw .uncrossable(R.self) }

    /// Refuses a closure with seven inputs whose result cannot cross the boundary. Always throws.
    @available(
        *, deprecated,
        message:
            "A result of this type cannot be passed on. Make the type ValueCodable, convert it, or discard it with _ =."
    )
    @_disfavoredOverload
    public init<A: Sendable, B: Sendable, C: Sendable, D: Sendable, E: Sendable, F: Sendable, G: Sendable, R>(
        _ name: String, _ a: some ActionInput<Instance, A>, _ b: some ActionInput<Instance, B>,
        _ c: some ActionInput<Instance, C>, _ d: some ActionInput<Instance, D>, _ e: some ActionInput<Instance, E>,
        _ f: some ActionInput<Instance, F>, _ g: some ActionInput<Instance, G>,
        _ body: @escaping @Sendable (A, B, C, D, E, F, G) async throws -> R
    ) throws(PluginError) { throw .uncrossable(R.self) }

    /// Refuses a closure with eight inputs whose result cannot cross the boundary. Always throws.
    @available(
        *, deprecated,
        message:
            "A result of this type cannot be passed on. Make the type ValueCodable, convert it, or discard it with _ =."
    )
    @_disfavoredOverload
    public init<
        A: Sendable, B: Sendable, C: Sendable, D: Sendable, E: Sendable, F: Sendable, G: Sendable, H: Sendable, R
    >(
        _ name: String, _ a: some ActionInput<Instance, A>, _ b: some ActionInput<Instance, B>,
        _ c: some ActionInput<Instance, C>, _ d: some ActionInput<Instance, D>, _ e: some ActionInput<Instance, E>,
        _ f: some ActionInput<Instance, F>, _ g: some ActionInput<Instance, G>, _ h: some ActionInput<Instance, H>,
        _ body: @escaping @Sendable (A, B, C, D, E, F, G, H) async throws -> R
    ) throws(PluginError) { throw .uncrossable(R.self) }
}

extension PluginError {
    package static func uncrossable<Result>(_ type: Result.Type) -> PluginError {
        PluginError(
            .invalidResult,
            "A result of the type \(type) cannot be passed on. Make the type ValueCodable, convert it, or discard it with "
                + "_ =.")
    }
}
