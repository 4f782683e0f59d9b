public import PluginABI
import Synchronization

extension PluginHost {
    /// Sets the fallback for targets that no module offers, and for actions that a target lacks; `nil` removes it.
    ///
    ///     host.onMissingTarget { target, action, parameters, origin in "\(target) is closed" }
    ///
    /// A target's own action `notFound` has precedence. The fallback runs on the thread of the call, possibly
    /// concurrently. Its result is the result of the call, and an error that it throws the error of the call.
    ///
    /// - Parameter handler: The code. It gets the names, the parameters by name, and the origin of the call.
    public func onMissingTarget(
        _ handler: (
            @Sendable (_ target: String, _ action: String, _ parameters: [String: Value], _ origin: CallOrigin) throws
                -> Value
        )?
    ) {
        let callback = handler.map { handler in
            program.callback { arguments throws -> Value in
                let missing = Missing(arguments)
                return try handler(missing.target, missing.action, missing.parameters, missing.origin)
            }
        }
        core.missingTargetHandler.withLock { $0 = callback.map { MissingTargetHandler(callback: $0, isAsync: false) } }
    }

    /// Sets an asynchronous fallback for targets that no module offers, and for actions that a target lacks.
    ///
    /// It can fetch a module and then make the call, for example. A call that cannot wait for it (`perform`, and `open`
    /// outside asynchronous code) ends with ``/PluginABI/PluginError/Code/asynchronousAction``. The timeout of the call
    /// applies, or ``HostConfiguration/asyncTimeout``; if the caller cancels the call, the task is cancelled.
    ///
    /// - Parameter handler: The code. It gets the names, the parameters by name, and the origin of the call.
    public func onMissingTarget(
        _ handler:
            @escaping @Sendable (
                _ target: String, _ action: String, _ parameters: [String: Value], _ origin: CallOrigin
            ) async throws -> Value
    ) {
        let callback = program.callback { arguments async throws -> Value in
            let missing = Missing(arguments)
            return try await handler(missing.target, missing.action, missing.parameters, missing.origin)
        }
        core.missingTargetHandler.withLock { $0 = MissingTargetHandler(callback: callback, isAsync: true) }
    }

    /// A call that leads nowhere, from the arguments of a ``MissingTargetHandler``.
    private struct Missing {
        let target, action: String
        let parameters: [String: Value]
        let origin: CallOrigin

        init(_ arguments: [Value]) {
            target = arguments[0].string ?? ""
            action = arguments[1].string ?? ""
            parameters = arguments[2].map ?? [:]
            origin = arguments[3].bool == true ? .remote : .local
        }
    }
}
