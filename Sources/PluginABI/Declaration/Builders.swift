// What may stand in the braces of a manifest and of a target: one after the other, with `if`, `switch` and `for`.

/// Collects the parts of a ``Manifest``.
@resultBuilder public enum ManifestBuilder {
    // Targets and types of objects leave their instance's type behind (see ActionDeclaration), inlined, so that not even
    // these functions need to know it.

    /// A target.
    @inlinable public static func buildExpression<Instance>(_ target: Target<Instance>) -> [any ManifestPart] {
        [target.declaration]
    }
    /// A type of object.
    @inlinable public static func buildExpression<Instance>(_ type: ObjectType<Instance>) -> [any ManifestPart] {
        [type.declaration]
    }
    /// Any other part.
    public static func buildExpression(_ part: some ManifestPart) -> [any ManifestPart] { [part] }
    /// Parts that were made elsewhere.
    public static func buildExpression(_ parts: [any ManifestPart]) -> [any ManifestPart] { parts }

    /// Empty braces.
    public static func buildBlock() -> [any ManifestPart] { [] }
    /// What stands first.
    public static func buildPartialBlock(first: [any ManifestPart]) -> [any ManifestPart] { first }
    /// What stands behind that, in the order in which it is written.
    public static func buildPartialBlock(
        accumulated: [any ManifestPart], next: [any ManifestPart]
    ) -> [any ManifestPart] { accumulated + next }
    /// `if` without `else`.
    public static func buildOptional(_ parts: [any ManifestPart]?) -> [any ManifestPart] { parts ?? [] }
    /// `if` and `switch`, one branch.
    public static func buildEither(first: [any ManifestPart]) -> [any ManifestPart] { first }
    /// `if` and `switch`, another branch.
    public static func buildEither(second: [any ManifestPart]) -> [any ManifestPart] { second }
    /// `for`.
    public static func buildArray(_ parts: [[any ManifestPart]]) -> [any ManifestPart] { Array(parts.joined()) }
}

/// Collects the actions of a ``Target``, of an ``ObjectType``, or of ``Subscribe``.
@resultBuilder public enum ActionBuilder<Instance> {
    /// One action.
    @inlinable public static func buildExpression(_ action: Action<Instance>) -> [ActionDeclaration] {
        [action.declaration]
    }
    /// Actions that were made elsewhere.
    public static func buildExpression(_ actions: [Action<Instance>]) -> [ActionDeclaration] {
        actions.map(\.declaration)
    }
    /// What a function that is marked with this builder has collected.
    public static func buildExpression(_ actions: [ActionDeclaration]) -> [ActionDeclaration] { actions }

    /// Empty braces.
    public static func buildBlock() -> [ActionDeclaration] { [] }
    /// What stands first.
    public static func buildPartialBlock(first: [ActionDeclaration]) -> [ActionDeclaration] { first }
    /// What stands behind that, in the order in which it is written.
    public static func buildPartialBlock(
        accumulated: [ActionDeclaration], next: [ActionDeclaration]
    ) -> [ActionDeclaration] { accumulated + next }
    /// `if` without `else`.
    public static func buildOptional(_ actions: [ActionDeclaration]?) -> [ActionDeclaration] { actions ?? [] }
    /// `if` and `switch`, one branch.
    public static func buildEither(first: [ActionDeclaration]) -> [ActionDeclaration] { first }
    /// `if` and `switch`, another branch.
    public static func buildEither(second: [ActionDeclaration]) -> [ActionDeclaration] { second }
    /// `for`.
    public static func buildArray(_ actions: [[ActionDeclaration]]) -> [ActionDeclaration] { Array(actions.joined()) }
}
