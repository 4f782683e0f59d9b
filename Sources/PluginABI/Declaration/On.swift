/// A hook of the module's life.
///
///     On(.setUp) { context in context.log(.info, "ready") }
///     On(.initialize) { context in try await Store.open() }
///
/// The hooks of all modules run in one order: level (``Level/basic`` first), then priority (higher first), then name;
/// `tearDown` in the reverse. Hooks of one module never overlap. An `async` closure is awaited, with a deadline.
///
/// A module that is replaced by a new file can hand over its state:
///
///     On(.suspend) { context in counter.value }
///     On(.resume, Int.self) { context, value, version in counter.value = value }
///     On(.unsuspend) { context in }
///
/// While that goes on, new calls of the module are held back, and those that run have ended.
public struct On: ManifestPart {
    /// When a hook runs. The raw values are those of the manifest.
    public enum Hook: String, Sendable {
        /// Before the module's actions can be called. What it throws refuses the activation.
        case setUp
        /// When every newcomer has been set up; it can call them, and they it, and nobody else can yet. Asynchronous
        /// ones of several modules overlap. What it throws refuses the module.
        case initialize = "init"
        /// When every newcomer is initialised. What it throws stands in the log.
        case didStart
        /// Before the end of the host, or of this module because another version serves, while calls go on.
        case willStop
        /// After the last call has ended, when the module goes or the host ends.
        case tearDown
        /// After `suspend`, when the replacement has failed, for whatever reason: the module goes on as if nothing had
        /// been, and gets the calls that were held back. Takes back what `suspend` let go of.
        case unsuspend
    }

    /// The hook that gives the module's state to the generation that replaces it.
    public enum Giving: String, Sendable {
        /// When a new file replaces the module, after its last call has ended and before the `init` of the new
        /// generation. The result is the state. What it throws refuses the replacement.
        case suspend
    }

    /// The hook that takes the state of the generation before.
    public enum Taking: String, Sendable {
        /// In the new generation, before its `init`, if the one before has given a state. What it throws refuses the
        /// replacement, and so does a state of another type than the declared one.
        case resume
    }

    /// Named like the hook, behind an `@`.
    private let action: ActionDeclaration

    private init(_ action: Action<Never>) { self.action = action.declaration }

    /// Runs `body` at a moment of the module's life, with a context that can call others.
    public init(_ hook: Hook, _ body: @escaping @Sendable (HostContext) throws -> Void) {
        self.init(Action("@" + hook.rawValue, .context(), body))
    }

    /// Runs `body` at a moment of the module's life and awaits its end. Past the deadline that the host sets, its task
    /// is cancelled, and the hook has failed.
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
}

extension On {
    /// Gives the module's state to the generation that replaces it: what `body` returns, of any type that an action can
    /// return.
    public init<State: ActionResult>(
        _ hook: Giving, _ body: @escaping @Sendable (HostContext) throws -> State
    ) {
        self.init(Action("@" + hook.rawValue, .context(), body))
    }

    /// Gives the module's state to the generation that replaces it, and is awaited, with a deadline.
    public init<State: ActionResult>(
        _ hook: Giving, _ body: @escaping @Sendable (HostContext) async throws -> State
    ) {
        self.init(Action("@" + hook.rawValue, .context(), body))
    }

    /// Takes the state that the generation before has given.
    ///
    /// - Parameters:
    ///   - hook: Which one.
    ///   - type: The type of the state. With ``Value`` it may be whatever older versions have given.
    ///   - body: Gets the context, the state, and the version of the module that gave it.
    public init<State: ActionParameter>(
        _ hook: Taking, _ type: State.Type,
        _ body: @escaping @Sendable (_ context: HostContext, _ state: State, _ version: String) throws -> Void
    ) {
        self.init(
            Action("@" + hook.rawValue, .context(), .required("state", type), .required("version", String.self), body))
    }

    /// Takes the state that the generation before has given, and is awaited, with a deadline.
    public init<State: ActionParameter & Sendable>(
        _ hook: Taking, _ type: State.Type,
        _ body: @escaping @Sendable (_ context: HostContext, _ state: State, _ version: String) async throws -> Void
    ) {
        self.init(
            Action("@" + hook.rawValue, .context(), .required("state", type), .required("version", String.self), body))
    }
}
