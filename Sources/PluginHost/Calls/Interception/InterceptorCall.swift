import PluginABI
import Synchronization

// An interceptor of a module is one of its actions; its arguments are the call as a map and its continuation as a
// callback.

extension Calls {
    /// Looks up the interceptor that a rule names in the current table, and calls it. Returns `nil`, without calling
    /// the receiver, if it does not exist.
    func callInterceptor(_ rule: InterceptorRule, _ parameters: Parameters, _ call: Call) -> plugin_token? {
        inNextRecord(call.receiver) { (thread, record) throws(PluginError) in
            let found: Endpoint? = registry.read(thread) { table in
                guard let endpoint = table.interceptors[rule.key] else { return nil }
                occupy(record, .passUnretained(endpoint), call)
                return endpoint
            }
            guard let found else { return nil }
            return try parameters.lend { (entries) throws(PluginError) in
                try invoke(found, entries, call, thread, record)
            }
        }
    }
}

extension InterceptedInvocation {
    /// Returns the arguments of a module's interceptor: the call as a map, and its continuation.
    private func parameters(_ call: InterceptedCall, _ continuation: Callback) -> Parameters {
        Parameters(positional: [call.value, continuation.value])
    }

    func passModule(
        _ rule: InterceptorRule, _ index: Int, _ call: InterceptedCall, _ frame: Frame
    ) throws -> Value {
        let continuation = CallContinuation(title: rule.description)
        defer { continuation.end() }
        let callback = call.context.callback { arguments throws -> Value in
            do { return try self.pass(index + 1, try continuation.change(call, arguments), frame.within) } catch {
                throw continuation.failed(error)
            }
        }
        var isThere = true
        do throws(PluginError) {
            let result = try program.receive {
                let receiver = Calls.Receiver($0, $1)
                isThere = start(rule, parameters(call, callback), call, frame, receiver) != nil
            }
            if isThere { return result }
        } catch {
            throw continuation.original(error)
        }
        guard rule.isOptional else { throw PluginError.missing(rule, endpoint) }
        return try pass(index + 1, call, frame)
    }

    func passModuleLater(
        _ rule: InterceptorRule, _ index: Int, _ call: InterceptedCall, _ frame: Frame
    ) async throws -> Value {
        let continuation = CallContinuation(title: rule.description)
        defer { continuation.end() }
        let isAsync = calls.registry.table.interceptors[rule.key]?.isAsync ?? false
        let callback =
            isAsync
            ? call.context.callback { arguments async throws -> Value in
                let (changed, frame) = (try continuation.change(call, arguments), frame.within)
                do {
                    return try await withTaskExecutorPreference(BlockingExecutor.modules) {
                        try await InterceptedTask.run(for: frame.parent) {
                            try await self.passLater(index + 1, changed, frame)
                        }
                    }
                } catch { throw continuation.failed(error) }
            }
            : call.context.callback { arguments throws -> Value in
                do {
                    return try self.waitForContinuation(
                        index + 1, try continuation.change(call, arguments), frame.within)
                } catch {
                    throw continuation.failed(error)
                }
            }
        let pending = PendingCall(host: calls.program.hostTable)
        var isThere = true
        pending.start {
            let token = start(rule, parameters(call, callback), call, frame, Calls.Receiver($0, $1))
            isThere = token != nil
            return token ?? 0
        }
        if isThere {
            do throws(PluginError) { return try await pending.outcome() } catch { throw continuation.original(error) }
        }
        guard rule.isOptional else { throw PluginError.missing(rule, endpoint) }
        return try await passLater(index + 1, call, frame)
    }

    /// Begins a call of a module's interceptor; `nil` if it does not exist.
    private func start(
        _ rule: InterceptorRule, _ parameters: Parameters, _ call: InterceptedCall, _ frame: Frame,
        _ receiver: Calls.Receiver
    ) -> plugin_token? {
        if frame.isOverdue {
            receiver.receive(.deadlineExceeded(endpoint))
            return 0
        }
        return calls.callInterceptor(rule, parameters, innerCall(call, frame, receiver))
    }
}

extension InterceptedInvocation.Frame {
    /// The frame with this thread's current call as the parent, if that call is made within the intercepted one;
    /// otherwise this frame. An interceptor can also continue from a thread of its own, on which no call runs.
    fileprivate var within: Self {
        var inner = self
        if let current = ThreadContext.current?.currentCall,
            CallChain(from: current).contains(where: { $0.token == token })
        {
            inner.parent = current
        }
        return inner
    }
}

/// What remains of an intercepted call, which an interceptor of a module can run until the interceptor has ended.
final class CallContinuation: Sendable {
    private let isOver = Mutex(false)
    private let failure = Mutex<PluginError?>(nil)
    private let title: String

    init(title: String) { self.title = title }

    func end() { isOver.withLock { $0 = true } }

    /// Stores the error of the continuation, so that an error of the host keeps its source if the interceptor
    /// passes it on.
    func failed(_ error: any Error) -> any Error {
        if let error = error as? PluginError { failure.withLock { $0 = error } }
        return error
    }

    /// Returns the original error of the continuation if the interceptor has passed it on; otherwise the error that
    /// the interceptor has thrown.
    func original(_ error: PluginError) -> PluginError {
        let failure = failure.withLock { $0 }
        return failure?.code == error.code && failure?.message == error.message ? failure! : error
    }

    /// Returns the call with the parameters that the interceptor passes.
    func change(_ call: InterceptedCall, _ arguments: [Value]) throws(PluginError) -> InterceptedCall {
        if isOver.withLock({ $0 }) {
            throw PluginError(
                .cancelled, "The interceptor \(title) has ended, and with it the call that it intercepted.")
        }
        guard arguments.count < 2 else {
            throw PluginError(
                .unknownParameter,
                "An intercepted call is continued with one map of parameters; \(arguments.count) arguments were given.")
        }
        var call = call
        if let given = arguments.first {
            guard let parameters = given.map else {
                throw PluginError(
                    .mistypedParameter,
                    "An intercepted call is continued with a map of parameters; a \(given.kind) was given.")
            }
            call.parameters = parameters
        }
        return call
    }
}

extension PluginError {
    static func missing(_ rule: InterceptorRule, _ endpoint: Endpoint) -> PluginError {
        PluginError(
            .interceptorMissing,
            "\(endpoint.title) requires the interceptor \(rule), which no module offers. Install its module, or "
                + "mark the interceptor optional in the configuration.")
    }
}
