/// A hook of the module's life.
///
///     On(.setUp) { context in context.log(.info, "ready") }
///     On(.initialize) { context in try await Store.open() }
///
/// The hooks of all modules run in one order: level (``Level/basic`` first), then priority (higher first), then name;
/// `tearDown` in the reverse. Hooks of one module never overlap. An `async` closure is awaited, with a deadline.
public struct On: ManifestPart {
    /// When a hook runs. The raw values are those of the manifest.
    public enum Hook: String, Sendable {
        /// Before the module's actions can be called. What it throws refuses the activation.
        case setUp
        /// When every newcomer has been set up and its actions can be called. Asynchronous ones of several modules
        /// overlap. What it throws takes the module out again.
        case initialize = "init"
        /// When every newcomer is initialised. What it throws stands in the log.
        case didStart
        /// Before the end of the host, or of this module because another version serves, while calls go on.
        case willStop
        /// After the last call has ended, when the module goes or the host ends.
        case tearDown
    }

    let hook: Hook
    let action: Action<Never>

    /// Runs `body` at a moment of the module's life, with a context that can call others.
    public init(_ hook: Hook, _ body: @escaping @Sendable (HostContext) throws -> Void) {
        self.hook = hook
        action = Action("@" + hook.rawValue, .context(), body)
    }

    /// Runs `body` at a moment of the module's life and awaits its end. Past the deadline that the host sets, its task
    /// is cancelled, and the hook has failed.
    public init(_ hook: Hook, _ body: @escaping @Sendable (HostContext) async throws -> Void) {
        self.hook = hook
        action = Action("@" + hook.rawValue, .context(), body)
    }

    public func add(to module: ModuleDescription) {
        let name = Value.string(hook.rawValue)
        module.hooks.append(action.isAsync ? ["name": name, "async": true] : name)
        _ = module.add([action], prefix: "")
    }
}
