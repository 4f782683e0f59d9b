/// A closure as a value. It can be passed as a parameter, and called immediately or later, from any thread, any number
/// of times.
///
/// A callback is an ``Object`` with one action, `call`, and lives until its last holder releases it.
///
///     let callback = context.callback { arguments in print(arguments); return .null }
///     try context.perform("B", "later", ["then": callback])
public struct Callback: Sendable, Hashable {
    /// The object whose action `call` is the closure.
    public let object: Object

    /// Uses an object as a callback.
    public init(_ object: Object) { self.object = object }

    /// Calls the closure, which must be synchronous. The arguments are as in a literal of ``Parameters``.
    @discardableResult
    public func callAsFunction(_ arguments: (any ValueConvertible)?...) throws(PluginError) -> Value {
        try object.perform("call", Parameters(literal: arguments))
    }

    /// Calls the closure, synchronous or asynchronous, without blocking a thread.
    @discardableResult
    public func callAsFunction(_ arguments: (any ValueConvertible)?...) async throws(PluginError) -> Value {
        try await object.call("call", Parameters(literal: arguments))
    }
}

extension Callback: ValueConvertible {
    public static var kind: Value.Kind { .object }
    public var value: Value { .object(object) }
    public init(_ value: Value) throws(PluginError) {
        guard let object = value.object else { throw .mistyped(value, expected: "a callback") }
        self.init(object)
    }
}

extension HostContext {
    /// Makes a callback from a closure. The closure runs on the thread that calls it, possibly concurrently. If 16
    /// million objects exist, a call that passes the callback fails.
    public func callback(_ body: @escaping @Sendable (_ arguments: [Value]) throws -> Value) -> Callback {
        callback(of: body)
    }

    /// Makes a callback from an asynchronous closure.
    public func callback(_ body: @escaping @Sendable (_ arguments: [Value]) async throws -> Value) -> Callback {
        callback(of: body)
    }

    /// Makes a callback from a closure with any result that can cross the boundary.
    package func callback(
        of body: @escaping @Sendable (_ arguments: [Value]) throws -> some ActionResult
    ) -> Callback { callback(flags: 0) { call in call.resolve(try body(call.values)) } }

    /// Makes a callback from an asynchronous closure with any result that can cross the boundary.
    package func callback(
        of body: @escaping @Sendable (_ arguments: [Value]) async throws -> some ActionResult
    ) -> Callback {
        callback(flags: PLUGIN_OBJECT_ASYNC) { call in
            let (reply, arguments) = (call.reply, call.values)
            reply.comes(from: .immediate { await reply.give { try await body(arguments) } })
        }
    }

    private func callback(flags: UInt32, _ run: @escaping @Sendable (Invocation) throws -> Void) -> Callback {
        let function = Unmanaged.passRetained(ActionFunction(run, names: [], host: host)).toOpaque()
        let handle = host.pointee.callback_create(
            host, ActionFunction.invoke, function, { Unmanaged<ActionFunction>.fromOpaque($0!).release() }, flags)
        return Callback(Object(adopting: handle, host: host))
    }
}

extension Invocation {
    fileprivate var values: [Value] {
        UnsafeBufferPointer(start: arguments, count: count).map { Value(copying: $0, host: host) }
    }
}
