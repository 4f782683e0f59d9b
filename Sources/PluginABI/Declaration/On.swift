/// A lifecycle hook.
///
///     On(.setUp) { context in context.log(.info, "ready") }
///     On(.initialize) { context in try await Store.open() }
///
/// The hooks run in the order in which modules start: after those of the modules that they require, then by level
/// (``Level/basic`` first), priority (higher first) and name. `tearDown` runs in the reverse order. Hooks of one module
/// never overlap. An `async` closure is awaited, with a deadline.
///
/// A module that is replaced by a new file can hand over its state:
///
///     On(.suspend) { context in counter.value }
///     On(.resume, Int.self) { context, value, version in counter.value = value }
///     On(.unsuspend) { context in }
///
/// During the hand-over no call of the module runs: the earlier ones have ended, and new ones wait.
public struct On: ManifestPart {
    /// The hooks for the start and the end of a module, and for a failed replacement. The raw values are the names in
    /// the manifest.
    public enum Hook: String, Sendable {
        /// Runs before the module's actions can be called and, if the module replaces another generation, before
        /// `suspend` of that generation. If the hook fails, the module is not activated.
        case setUp
        /// Runs when all new modules have been set up. They can call each other; no other module or program can call
        /// them yet. Asynchronous hooks of several modules overlap. If the hook fails, the module does not start.
        case initialize = "init"
        /// Runs when all new modules have been initialised. An error is logged.
        case didStart
        /// Runs before the module ends because a new version serves, the module is removed, or the host shuts down.
        /// Calls continue while it runs.
        case willStop
        /// Runs after the last call has ended, if the module was replaced or removed, or the host shuts down.
        case tearDown
        /// Runs after `suspend`, if the replacement has failed for any reason: the module continues as before, and gets
        /// the calls that were waiting. The hook acquires again what `suspend` released.
        case unsuspend
    }

    /// The hook that hands over the module's state to the generation that replaces it.
    public enum Giving: String, Sendable {
        /// Runs when a new file replaces the module, if the new generation has `resume` or either generation is
        /// exclusive: after the last call has ended, and before the `init` of the new generation. The result is the
        /// state. If the hook fails, the module is not replaced.
        case suspend
    }

    /// The hook that receives the state of the previous generation.
    public enum Taking: String, Sendable {
        /// Runs in the new generation, before its `init`, if the previous one has handed over a state. If the hook
        /// fails, or the state is not of the declared type, the module is not replaced.
        case resume
    }

    /// The action, named like the hook with an `@` in front.
    private let action: ActionDeclaration

    private init(_ action: Action<Never>) { self.action = action.declaration }

    /// Runs `body` at a point in the module's life, with a context for calls to other modules.
    public init(_ hook: Hook, _ body: @escaping @Sendable (HostContext) throws -> Void) {
        self.init(Action("@" + hook.rawValue, .context(), body))
    }

    /// Runs `body` at a point in the module's life and awaits its end. If the host's deadline passes first, the task of
    /// `body` is cancelled, and the hook has failed.
    public init(_ hook: Hook, _ body: @escaping @Sendable (HostContext) async throws -> Void) {
        self.init(Action("@" + hook.rawValue, .context(), body))
    }

    public func add(to module: ModuleDescription) {
        let hook = String(action.name.dropFirst())
        if action.isAsync {
            var entry = ManifestObject(name: hook)
            entry.add("async", true)
            module.hooks.append(entry.json)
        } else {
            module.hooks.append(Value.string(hook).json)
        }
        _ = module.add([action], prefix: "")
    }

    /// Hands over the module's state to the generation that replaces it. The state is the result of `body`, of any type
    /// that an action can return.
    public init<State: ActionResult>(
        _ hook: Giving, _ body: @escaping @Sendable (HostContext) throws -> State
    ) {
        self.init(Action("@" + hook.rawValue, .context(), body))
    }

    /// Hands over the module's state to the generation that replaces it. `body` is awaited, with a deadline.
    public init<State: ActionResult>(
        _ hook: Giving, _ body: @escaping @Sendable (HostContext) async throws -> State
    ) {
        self.init(Action("@" + hook.rawValue, .context(), body))
    }

    /// Receives the state that the previous generation has handed over.
    ///
    /// - Parameters:
    ///   - hook: The hook.
    ///   - type: The type of the state. ``Value`` accepts the state of any older version.
    ///   - body: The code. It gets the context, the state, and the version of the module that handed over the state.
    public init<State: ActionParameter>(
        _ hook: Taking, _ type: State.Type,
        _ body: @escaping @Sendable (_ context: HostContext, _ state: State, _ version: String) throws -> Void
    ) {
        self.init(
            Action("@" + hook.rawValue, .context(), .required("state", type), .required("version", String.self), body))
    }

    /// Receives the state that the previous generation has handed over. `body` is awaited, with a deadline.
    public init<State: ActionParameter & Sendable>(
        _ hook: Taking, _ type: State.Type,
        _ body: @escaping @Sendable (_ context: HostContext, _ state: State, _ version: String) async throws -> Void
    ) {
        self.init(
            Action("@" + hook.rawValue, .context(), .required("state", type), .required("version", String.self), body))
    }
}
