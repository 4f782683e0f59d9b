/// Code that a module offers to put around calls: it can read and change the parameters, answer itself, refuse by
/// throwing, measure, try again.
///
///     Intercept("audit") { call, next in
///         call.context.log(.info, "\(call.target)/\(call.action)")
///         return try next(call)
///     }
///
/// It does nothing until the host's configuration names it, and says for which calls. It runs on the thread of the call,
/// also concurrently, unless the module is serial.
public struct Intercept: ManifestPart {
    /// The rest of a call: further interceptors, then the action. May be called any number of times, or not at all, until
    /// the interceptor has ended.
    public typealias Next = (InterceptedCall) throws -> Value
    /// The rest of a call, asynchronously.
    public typealias AsyncNext = (InterceptedCall) async throws -> Value

    let name: String
    let action: ActionDeclaration
    private(set) var summary = ""

    /// Offers code for calls of both kinds.
    ///
    /// - Parameters:
    ///   - name: What the host's configuration names it by: `[A-Za-z_][A-Za-z0-9_.-]*`, unique in the module.
    ///   - body: Gets the call and the rest of it; what it returns or throws is the outcome.
    public init(_ name: String, _ body: @escaping @Sendable (_ call: InterceptedCall, _ next: Next) throws -> Value) {
        self.name = name
        action =
            Action<Never>("~" + name, .context(), .required("call", Value.self), .required("next", Callback.self)) {
                context, call, next in
                let call = InterceptedCall(call, in: context)
                return try body(call) { changed in
                    try next.object.perform("call", [.map(changed.parameters)], in: context)
                }
            }.declaration
    }

    /// Offers asynchronous code, for calls that are awaited. A call that cannot wait for it (`perform`) ends with
    /// ``PluginError/Code/asynchronousAction``.
    public init(
        _ name: String,
        _ body: @escaping @Sendable (_ call: InterceptedCall, _ next: AsyncNext) async throws -> Value
    ) {
        self.name = name
        action =
            Action<Never>("~" + name, .context(), .required("call", Value.self), .required("next", Callback.self)) {
                (context, call, next) async throws -> Value in
                let call = InterceptedCall(call, in: context)
                return try await body(call) { changed in
                    try await next.object.call("call", [.map(changed.parameters)], in: context)
                }
            }.declaration
    }

    /// One sentence about what it does.
    public func summary(_ text: String) -> Self { modified(self) { $0.summary = text } }

    public func add(to module: ModuleDescription) {
        var entry = ManifestObject(name: name)
        if action.isAsync { entry.add("async", true) }
        if !summary.isEmpty { entry.add("summary", .string(summary)) }
        module.interceptors.append(entry.json)
        _ = module.add([action], prefix: "")
    }
}

extension InterceptedCall {
    /// As it crosses the border: a map.
    package var value: Value {
        [
            "target": .string(target), "action": .string(action), "parameters": .map(parameters),
            "remote": .bool(origin == .remote), "route": route.map(Value.string) ?? .null,
        ]
    }

    fileprivate init(_ value: Value, in context: HostContext) {
        self.init(
            target: value["target"]?.string ?? "", action: value["action"]?.string ?? "",
            parameters: value["parameters"]?.map ?? [:], origin: value["remote"] == true ? .remote : .local,
            route: value["route"]?.string, context: context)
    }
}
