// `.instance()` in a target without an instance: a compile error that says what to do. The action's closure gets a
// value on which it can call anything, so that the closure compiles and the only error is the use of `.instance()`,
// which throws and is not marked with `try`. The deprecation says why, as in UncrossableResults.swift.

/// Stands for the instance that a target without `make:` does not have.
@dynamicMemberLookup @dynamicCallable
public struct MissingInstance: ActionResult {
    public static var resultKind: Value.Kind { .any }
    public func lend(to body: (plugin_value) -> Void) { body(plugin_value_null()) }
    public subscript(dynamicMember name: String) -> MissingInstance { self }
    public func dynamicallyCall(withArguments arguments: [Any]) -> MissingInstance { self }
    public func dynamicallyCall(withKeywordArguments arguments: KeyValuePairs<String, Any>) -> MissingInstance { self }
}

/// The input of an action in a target that has no instance.
public struct MissingInstanceInput: ActionInput {
    public typealias Instance = Never
    /// Always throws.
    public static func read(from inputs: inout InvocationInputs) throws(PluginError) -> MissingInstance {
        throw PluginError(.instanceFailed, "The target has no instance. Declare how to make one, with make:.")
    }
}

extension ActionInput where Self == MissingInstanceInput {
    /// Refuses an instance that the target does not have. Always throws.
    @available(
        *, deprecated,
        message: "This target has no instance. Declare how to make one: Target(\"Name\", make: Counter.init) { … }."
    )
    @_disfavoredOverload public static func instance() throws(PluginError) -> MissingInstanceInput {
        throw PluginError(.instanceFailed, "The target has no instance. Declare how to make one, with make:.")
    }
}
