/// An action behind its C function. A class whose members never change while it can be called, called without retaining
/// it: that costs a call the least.
final class ActionFunction {
    private let run: @Sendable (Invocation) throws -> Void
    /// The host's table: set on activation, before the first call.
    nonisolated(unsafe) var host: UnsafePointer<plugin_host>!

    init(_ run: @escaping @Sendable (Invocation) throws -> Void, host: UnsafePointer<plugin_host>?) {
        self.run = run
        self.host = host
    }

    static let invoke: plugin_invoke = { data, call, arguments, count in
        Unmanaged<ActionFunction>.fromOpaque(data!)._withUnsafeGuaranteedRef { action in
            let invocation = Invocation(call: call!, arguments: arguments, count: count, host: action.host)
            do {
                try action.run(invocation)
            } catch {
                invocation.reject(error)
            }
        }
    }
}
