// The conversion of Swift calls to calls of the host's table, and back. Programs, modules and objects all call through
// this code.

/// The address of a call.
enum Address {
    case action(String, String)
    case url(String)
    /// A URL whose action must return an object.
    case objectURL(String)
    case object(Object, String)
    /// A service by its name and the lowest acceptable version, and an action.
    case service(String, String?, String)
    case event(String, isSticky: Bool)
    /// An event that goes up the chain, from an object or, without one, from the receiver of the current call.
    case chain(String, from: Object?)
    /// The number of a bound action.
    case bound(plugin_bound_action)

    /// Lends the request to `body` in the form in which it crosses the boundary. Inlined, because nearly every caller
    /// knows which kind of address it is.
    @inline(__always)
    func withRequest<Result>(
        _ parameters: Parameters, _ origin: CallOrigin, _ timeout: Duration?, flags: UInt32 = 0,
        method: RouteMethod? = nil,
        _ body: (UnsafePointer<plugin_request>) -> Result
    ) throws(PluginError) -> Result {
        var request = plugin_request()
        request.size = UInt32(MemoryLayout<plugin_request>.size)
        request.flags = flags | (origin == .remote ? PLUGIN_REQUEST_REMOTE : 0)
        request.timeout = timeout.map { max(1, $0.nanoseconds) } ?? 0
        let entries = try parameters.entries
        defer { withExtendedLifetime(parameters) {} }
        request.parameters = entries.baseAddress
        request.parameter_count = UInt64(entries.count)
        switch self {
        case .action(let target, let action):
            return target.withPluginString { target in
                action.withPluginString { action in
                    request.address = PLUGIN_ADDRESS_ACTION
                    request.target = target
                    request.action = action
                    return body(&request)
                }
            }
        case .url(let url), .objectURL(let url):
            if case .objectURL = self { request.flags |= PLUGIN_REQUEST_OBJECT }
            request.method = method?.number ?? 0
            return url.withPluginString { url in
                request.address = PLUGIN_ADDRESS_URL
                request.target = url
                return body(&request)
            }
        case .service(let name, let version, let action):
            return name.withPluginString { name in
                action.withPluginString { action in
                    (version ?? "").withPluginString { version in
                        request.address = PLUGIN_ADDRESS_SERVICE
                        request.target = name
                        request.action = action
                        request.version = version
                        return body(&request)
                    }
                }
            }
        case .event(let name, let isSticky):
            if isSticky { request.flags |= PLUGIN_REQUEST_STICKY }
            return name.withPluginString { name in
                request.address = PLUGIN_ADDRESS_EVENT
                request.target = name
                return body(&request)
            }
        case .chain(let event, let origin):
            return event.withPluginString { event in
                request.address = PLUGIN_ADDRESS_CHAIN
                request.target = event
                request.object = origin?.handle ?? 0
                return withExtendedLifetime(origin) { body(&request) }
            }
        case .bound(let number):
            request.address = PLUGIN_ADDRESS_BOUND
            request.object = number
            return body(&request)
        case .object(let object, let action):
            return action.withPluginString { action in
                request.address = PLUGIN_ADDRESS_OBJECT
                request.object = object.handle
                request.action = action
                return withExtendedLifetime(object) { body(&request) }
            }
        }
    }
}

extension HostContext {
    @inline(__always)
    func perform(
        _ address: Address, _ parameters: Parameters, origin: CallOrigin = .local, timeout: Duration? = nil,
        method: RouteMethod? = nil
    ) throws(PluginError) -> Value {
        var outcome = SynchronousOutcome(host: host)
        try address.withRequest(parameters, origin, timeout, flags: requestFlags, method: method) { request in
            withUnsafeMutablePointer(to: &outcome) { outcome in
                host.pointee.perform(host, call, request, SynchronousOutcome.completion, outcome)
            }
        }
        return try outcome.result.get()
    }

    @inline(__always)
    func call(
        _ address: Address, _ parameters: Parameters, origin: CallOrigin = .local, timeout: Duration? = nil,
        method: RouteMethod? = nil
    ) async throws(PluginError) -> Value {
        try await start(address, parameters, origin: origin, timeout: timeout, method: method).outcome()
    }

    /// Starts a call. The caller must ask the returned object for the outcome, and await it if it has not arrived:
    /// until then the host writes to that object.
    package func start(
        _ target: String, _ action: String, _ parameters: Parameters, timeout: Duration?
    ) throws(PluginError) -> PendingCall {
        try start(.action(target, action), parameters, timeout: timeout)
    }

    @inline(__always)
    private func start(
        _ address: Address, _ parameters: Parameters, origin: CallOrigin = .local, timeout: Duration?,
        method: RouteMethod? = nil
    ) throws(PluginError) -> PendingCall {
        let pending = PendingCall(host: host)
        try address.withRequest(parameters, origin, timeout, flags: requestFlags, method: method) { request in
            pending.start(call, request)
        }
        return pending
    }

    /// Awaits the outcome of an operation other than a call, which the host reports once: `begin` starts the operation,
    /// and returns the token to cancel it by.
    func call(
        _ begin: (plugin_completion, UnsafeMutableRawPointer) -> plugin_token
    ) async throws(PluginError) -> Value {
        let pending = PendingCall(host: host)
        pending.start(begin)
        return try await pending.outcome()
    }

    /// Returns an outcome that the host reports once, before `begin` returns.
    package func receive(
        _ begin: (plugin_completion, UnsafeMutableRawPointer) -> Void
    ) throws(PluginError) -> Value {
        var outcome = SynchronousOutcome(host: host)
        withUnsafeMutablePointer(to: &outcome) { begin(SynchronousOutcome.completion, $0) }
        return try outcome.result.get()
    }

    func wait(
        for address: Address, _ parameters: Parameters, origin: CallOrigin = .local, timeout: Duration
    ) throws(PluginError) -> Value {
        if withUnsafeCurrentTask(body: { $0 != nil }) {
            throw PluginError(
                .blockingInTask, "performAndWait blocks its thread, which a Swift task must not do. Use await call(…).")
        }
        return try start(address, parameters, origin: origin, timeout: timeout).wait().get()
    }
}

/// The outcome of a synchronous call, on the caller's stack.
private struct SynchronousOutcome {
    let host: UnsafePointer<plugin_host>
    var result: Result<Value, PluginError> = .success(.null)

    static let completion: plugin_completion = { data, value, error in
        let outcome = data!.assumingMemoryBound(to: SynchronousOutcome.self)
        let result = Result(value, error, host: outcome.pointee.host)
        // Not assigned, because the null that is there need not be released.
        withUnsafeMutablePointer(to: &outcome.pointee.result) { $0.initialize(to: result) }
    }
}

extension Result<Value, PluginError> {
    /// Makes an outcome from the arguments of a completion.
    package init(
        _ value: UnsafePointer<plugin_value>?, _ error: UnsafePointer<plugin_error>?, host: UnsafePointer<plugin_host>
    ) {
        self =
            if let error { .failure(PluginError(error.pointee)) } else {
                .success(value.map { Value(copying: $0.pointee, host: host) } ?? .null)
            }
    }
}

extension PluginError {
    /// Copies an error received across the boundary.
    package init(_ raw: plugin_error) {
        self.init(
            Code(rawValue: raw.code.text), raw.message.text, source: raw.source.count == 0 ? nil : raw.source.text)
    }

    /// Lends the error to `body` in the form in which it crosses the boundary.
    package func lend(to body: (UnsafePointer<plugin_error>) -> Void) {
        code.rawValue.withPluginString { code in
            message.withPluginString { message in
                (source ?? "").withPluginString { source in
                    var error = plugin_error(code: code, message: message, source: source)
                    body(&error)
                }
            }
        }
    }
}
