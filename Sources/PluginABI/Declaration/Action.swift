/// One action of a target or of an object type: a name and a typed closure.
///
///     Action("fetchDetail", .required("key", String.self), .optional("page", Int.self, default: 1)) { key, page in
///         Detail(title: "Detail of \(key)", page: page)
///     }
///
/// The inputs are declared once: they name the parameters in the manifest, tell the host what to check and convert, and
/// give the closure its types. An `async` closure makes an asynchronous action. What the closure throws, the caller
/// receives. Closures run on whatever thread calls, also concurrently, unless the target or the module is serial.
public struct Action<Instance>: Sendable {
    @usableFromInline let name: String
    let parameters: [ParameterDeclaration]
    let resultKind: Value.Kind
    let isAsync: Bool
    private(set) var isRemote = false
    private(set) var summary = ""
    /// Runs the closure on a call; what it throws is the reply.
    let run: @Sendable (Invocation) throws -> Void

    @usableFromInline init(
        _ name: String, _ parameters: [ParameterDeclaration?], _ resultKind: Value.Kind, isAsync: Bool,
        _ run: @escaping @Sendable (Invocation) throws -> Void
    ) {
        self.name = name
        self.parameters = parameters.compactMap(\.self)
        self.resultKind = resultKind
        self.isAsync = isAsync
        self.run = run
    }

    /// Lets other programs call the action, by a URL. A name that begins with `native` cannot be declared so.
    public func remote() -> Self { with { $0.isRemote = true } }

    /// One sentence about what the action does, for lists and generated code.
    public func summary(_ text: String) -> Self { with { $0.summary = text } }

    private func with(_ change: (inout Self) -> Void) -> Self {
        var copy = self
        change(&copy)
        return copy
    }
}

extension Invocation {
    @inlinable func resolve(_ result: some ActionResult) { host.resolve(call.pointee.token, result) }
    @inlinable func resolve() { host.resolve(call.pointee.token) }
    func reject(_ error: any Error) { host.reject(call.pointee.token, error) }

    /// The reply that a task gives, for an asynchronous closure.
    @inlinable var reply: TaskReply { TaskReply(host: host, call: call.pointee.token) }
}
