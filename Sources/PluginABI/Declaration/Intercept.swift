/// An interceptor: code of a module that runs around calls. It can read and change the parameters, answer a call
/// itself, refuse it by throwing, measure it, or try it again.
///
///     Intercept("audit") { call, next in
///         call.context.log(.info, "\(call.target)/\(call.action)")
///         return try next(call)
///     }
///
/// The interceptor has no effect until the host's configuration names it and the calls that it applies to. It runs on
/// the thread of the call, possibly concurrently, unless the module is serial.
public struct Intercept: ManifestPart {
    /// Continues a call: runs the further interceptors, then the action. Until it returns, the interceptor may call
    /// this any number of times, or not at all.
    public typealias Next = (InterceptedCall) throws -> Value
    /// The asynchronous form of ``Intercept/Next``.
    public typealias AsyncNext = (InterceptedCall) async throws -> Value

    let name: String
    let action: ActionDeclaration
    private(set) var summary = ""

    /// Offers an interceptor for synchronous and asynchronous calls.
    ///
    /// - Parameters:
    ///   - name: The name used in the host's configuration: `[A-Za-z_][A-Za-z0-9_.-]*`, unique in the module.
    ///   - body: The code. It gets the call and the function that continues it; the value that it returns or the error
    ///     that it throws is the outcome.
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

    /// Offers an asynchronous interceptor, for calls that are awaited. A call that cannot wait for it (`perform`) ends
    /// with ``PluginError/Code/asynchronousAction``.
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

    /// Adds one sentence about what the interceptor does.
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
    /// The call as a map, the form in which it crosses the boundary.
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
