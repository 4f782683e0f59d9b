/// An action, as the data of its C function. A call does not retain it, because calls must be cheap; its members do not
/// change while it can be called.
final class ActionFunction {
    private let run: @Sendable (Invocation) throws -> Void
    /// The names of the action and of its parameters, for errors; empty for a callback.
    private let names: [String]
    /// The host's table. Set on activation, before the first call.
    nonisolated(unsafe) var host: UnsafePointer<plugin_host>!

    init(
        _ run: @escaping @Sendable (Invocation) throws -> Void, names: [String], host: UnsafePointer<plugin_host>?
    ) {
        (self.run, self.names) = (run, names)
        self.host = host
    }

    static let invoke: plugin_invoke = { data, call, arguments, count in
        Unmanaged<ActionFunction>.fromOpaque(data!)._withUnsafeGuaranteedRef { action in
            let invocation = Invocation(call: call!, arguments: arguments, count: count, host: action.host)
            do {
                try action.run(invocation)
            } catch {
                invocation.reject(error, action.names)
            }
        }
    }
}
