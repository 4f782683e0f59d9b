/// One action of a target or of an object type: a name and a typed closure.
///
///     Action("fetchDetail", .required("key", String.self), .optional("page", Int.self, default: 1)) { key, page in
///         Detail(title: "Detail of \(key)", page: page)
///     }
///
/// The inputs are declared once: they name the parameters in the manifest, specify what the host checks and converts,
/// and determine the types of the closure's parameters. An `async` closure makes an asynchronous action. The caller
/// receives the error that the closure throws. Closures run on the thread of the caller, possibly concurrently, unless
/// the target or the module is serial.
public struct Action<Instance>: Sendable {
    @usableFromInline private(set) var declaration: ActionDeclaration

    @usableFromInline init(
        _ name: String, _ parameters: [ParameterDeclaration?], _ result: ResultDeclaration, isAsync: Bool,
        _ run: @escaping @Sendable (Invocation) throws -> Void
    ) {
        let parameters = parameters.compactMap(\.self)
        declaration = ActionDeclaration(
            name: name, parameters: parameters.filter { $0.role == .parameter },
            hasRest: parameters.contains { $0.role == .rest },
            result: parameters.first { $0.role == .reply }?.repliedResult ?? result, isAsync: isAsync, run: run)
    }

    @inlinable @inline(__always) init<R: ActionResult>(
        _ name: String, _ parameters: [ParameterDeclaration?], _ result: R.Type, isAsync: Bool,
        _ run: @escaping @Sendable (Invocation) throws -> Void
    ) { self.init(name, parameters, ResultDeclaration(result), isAsync: isAsync, run) }

    /// Allows other programs to call the action, by a URL. An action whose name begins with `native` cannot be remote.
    public func remote() -> Self { modified(self) { $0.declaration.isRemote = true } }

    /// Allows other programs to call the action, by a URL, if the program's guard finds that they satisfy the demands.
    ///
    /// A program without a guard refuses such calls. Calls from within the program are not affected.
    ///
    /// - Parameter demands: Names whose meaning the program decides, such as `login`.
    public func remote(requires demands: String...) -> Self {
        modified(self) { ($0.declaration.isRemote, $0.declaration.demands) = (true, demands) }
    }

    /// Declares that calling the action twice with the same parameters has the effect of calling it once, so that a
    /// caller that has received no reply may call it again. The host does not check this, and does not repeat calls
    /// itself.
    public func idempotent() -> Self { modified(self) { $0.declaration.isIdempotent = true } }

    /// Makes the action handle all events that go up the chain and whose names begin with a prefix; an empty prefix
    /// means all events. `Action.handle(prefix:)` is shorter if the parameters are not declared one by one.
    public func handles(prefix: String) -> Self { modified(self) { $0.declaration.handledPrefix = prefix } }

    /// Adds one sentence about what the action does, for lists and generated code.
    public func summary(_ text: String) -> Self { modified(self) { $0.declaration.summary = text } }
}

/// The declaration of an ``Action``, independent of its instance type.
///
/// This type is not generic, and no other type that a manifest keeps should be: each module has its own copy of
/// `PluginABI`, so the runtime would make and keep the generic types, and those of their arrays, once for each module.
public struct ActionDeclaration: Sendable {
    let name: String
    let parameters: [ParameterDeclaration]
    /// Whether the action accepts parameters that it does not declare.
    let hasRest: Bool
    let result: ResultDeclaration
    let isAsync: Bool
    var isRemote = false
    /// Whether calling the action twice has the effect of calling it once.
    var isIdempotent = false
    /// The demands of the action on other programs, which the program's guard checks.
    var demands: [String] = []
    var summary = ""
    /// The prefix of the names of the events that the action handles; `nil` if the action handles only the event that
    /// its own name contains, or none.
    var handledPrefix: String?
    /// Runs the closure on a call. An error that it throws becomes the reply.
    let run: @Sendable (Invocation) throws -> Void
}

/// The declaration of a result.
@usableFromInline struct ResultDeclaration: Sendable {
    let kind: Value.Kind
    /// Returns the Swift type; `nil` if there is none. A closure, so that types are made only for tools that ask.
    let type: (@Sendable () -> any ActionResult.Type)?

    @usableFromInline init(_ kind: Value.Kind, _ type: (@Sendable () -> any ActionResult.Type)? = nil) {
        (self.kind, self.type) = (kind, type)
    }

    @inlinable @inline(__always) init<R: ActionResult>(_ type: R.Type) { self.init(R.resultKind) { R.self } }

    /// No result.
    @usableFromInline static var null: ResultDeclaration { ResultDeclaration(.null) }
}

extension Invocation {
    /// Replies with the result of a synchronous action.
    @inlinable func resolve(_ result: some ActionResult) {
        do throws(PluginError) {
            try result.lend { raw in _ = plugin_reply(host, call, raw) }
        } catch {
            host.rejectResult(token, error)
        }
    }
    @inlinable func resolve() { _ = plugin_reply(host, call, plugin_value_null()) }
    func reject(_ error: any Error) { host.reject(token, error) }

    /// The reply of an asynchronous closure, given by its task.
    @inlinable var reply: TaskReply { TaskReply(host: host, call: token) }
}
