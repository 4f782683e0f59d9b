// The result builders of manifests and targets. They support `if`, `switch` and `for`.

/// Collects the parts of a ``Manifest``.
@resultBuilder public enum ManifestBuilder {
    // A target or an object type is reduced to a declaration without its instance type (see ActionDeclaration). The
    // functions that do so are inlined, so that not even they depend on the instance type.

    /// Adds a target.
    @inlinable public static func buildExpression<Instance>(_ target: Target<Instance>) -> [any ManifestPart] {
        [target.declaration]
    }
    /// Adds an object type.
    @inlinable public static func buildExpression<Instance>(_ type: ObjectType<Instance>) -> [any ManifestPart] {
        [type.declaration]
    }
    /// Adds any other part.
    public static func buildExpression(_ part: some ManifestPart) -> [any ManifestPart] { [part] }
    /// Adds parts that were made elsewhere.
    public static func buildExpression(_ parts: [any ManifestPart]) -> [any ManifestPart] { parts }

    /// Supports empty braces.
    public static func buildBlock() -> [any ManifestPart] { [] }
    /// Begins with the first expression.
    public static func buildPartialBlock(first: [any ManifestPart]) -> [any ManifestPart] { first }
    /// Adds the next expression, in source order.
    public static func buildPartialBlock(
        accumulated: [any ManifestPart], next: [any ManifestPart]
    ) -> [any ManifestPart] { accumulated + next }
    /// Supports `if` without `else`.
    public static func buildOptional(_ parts: [any ManifestPart]?) -> [any ManifestPart] { parts ?? [] }
    /// Supports `if` and `switch`: the first branch.
    public static func buildEither(first: [any ManifestPart]) -> [any ManifestPart] { first }
    /// Supports `if` and `switch`: the second branch.
    public static func buildEither(second: [any ManifestPart]) -> [any ManifestPart] { second }
    /// Supports `for`.
    public static func buildArray(_ parts: [[any ManifestPart]]) -> [any ManifestPart] { Array(parts.joined()) }
}

/// Collects the actions of a ``Target``, of an ``ObjectType``, or of ``Subscribe``.
@resultBuilder public enum ActionBuilder<Instance> {
    /// Adds an action.
    @inlinable public static func buildExpression(_ action: Action<Instance>) -> [ActionDeclaration] {
        [action.declaration]
    }
    /// Adds actions that were made elsewhere.
    public static func buildExpression(_ actions: [Action<Instance>]) -> [ActionDeclaration] {
        actions.map(\.declaration)
    }
    /// Adds the result of a function that is marked with this builder.
    public static func buildExpression(_ actions: [ActionDeclaration]) -> [ActionDeclaration] { actions }
    /// Refuses a part of a manifest.
    @available(
        *, unavailable,
        message:
            "A target contains only actions. Write Subscribe, Route, Service, On, ObjectType and the like beside the target, in the Manifest."
    )
    public static func buildExpression(_ part: some ManifestPart) -> [ActionDeclaration] { [] }

    /// Supports empty braces.
    public static func buildBlock() -> [ActionDeclaration] { [] }
    /// Begins with the first expression.
    public static func buildPartialBlock(first: [ActionDeclaration]) -> [ActionDeclaration] { first }
    /// Adds the next expression, in source order.
    public static func buildPartialBlock(
        accumulated: [ActionDeclaration], next: [ActionDeclaration]
    ) -> [ActionDeclaration] { accumulated + next }
    /// Supports `if` without `else`.
    public static func buildOptional(_ actions: [ActionDeclaration]?) -> [ActionDeclaration] { actions ?? [] }
    /// Supports `if` and `switch`: the first branch.
    public static func buildEither(first: [ActionDeclaration]) -> [ActionDeclaration] { first }
    /// Supports `if` and `switch`: the second branch.
    public static func buildEither(second: [ActionDeclaration]) -> [ActionDeclaration] { second }
    /// Supports `for`.
    public static func buildArray(_ actions: [[ActionDeclaration]]) -> [ActionDeclaration] { Array(actions.joined()) }
}
