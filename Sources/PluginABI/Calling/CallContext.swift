/// What a program says about a call besides its parameters: the trace that it is part of, and on whose behalf it is
/// made.
///
/// The program sets it (`PluginHost.withCallContext`). All calls that the program's call leads to have the same
/// context, from module to module, until the program's call is over. Modules can read it (``HostContext/callContext``),
/// but not change it.
public struct CallContext: Sendable, Hashable {
    /// The trace; `nil` if there is none.
    public var trace: TraceContext?
    /// The name of whoever was authenticated, such as the subject of a token or certificate; never the token itself.
    /// `nil` if that is not known.
    public var caller: String?

    /// Makes a context.
    ///
    /// - Parameters:
    ///   - trace: The trace that the call is part of.
    ///   - caller: The name of whoever was authenticated: 1 to `PLUGIN_CALL_CALLER_MAX_BYTES` bytes.
    public init(trace: TraceContext? = nil, caller: String? = nil) { (self.trace, self.caller) = (trace, caller) }

    /// Whether the context has neither a trace nor a caller.
    public var isEmpty: Bool { trace == nil && caller == nil }

    /// Checks the name of the caller.
    ///
    /// - Throws: ``PluginError/Code/invalidValue`` if it is empty or too long.
    package func check() throws(PluginError) {
        guard let caller, !(1...Int(PLUGIN_CALL_CALLER_MAX_BYTES)).contains(caller.utf8.count) else { return }
        throw PluginError(
            .invalidValue,
            caller.isEmpty
                ? "The caller of a call context is an empty string. Leave it out if it is not known."
                : "The caller of a call context, “\(caller.shortened)”, has \(caller.utf8.count) bytes. It may have at most "
                    + "\(PLUGIN_CALL_CALLER_MAX_BYTES).")
    }
}

extension HostContext {
    /// The trace of the call, and on whose behalf it is made; empty if the program has set neither, or if the call, or
    /// the program's call that led to it, is over. An action that continues after its reply must read it
    /// before the reply.
    public var callContext: CallContext {
        guard let contexts = plugin_call_contexts_of(host) else { return CallContext() }
        var context = CallContext()
        withUnsafeMutablePointer(to: &context) { context in
            _ = contexts.pointee.read(
                host, call,
                { data, raw in data!.assumingMemoryBound(to: CallContext.self).pointee = CallContext(raw!.pointee) },
                context)
        }
        return context
    }

    /// The trace that the call is part of; `nil` if there is none. See ``callContext``.
    public var trace: TraceContext? { callContext.trace }

    /// On whose behalf the call is made; `nil` if that is not known. See ``callContext``.
    public var caller: String? { callContext.caller }
}

extension CallContext {
    /// Copies a context received across the boundary.
    package init(_ raw: plugin_call_context) {
        self.init(
            trace: TraceContext(traceparent: raw.trace_parent.text, tracestate: raw.trace_state.text),
            caller: raw.caller.count == 0 ? nil : raw.caller.text)
    }

    /// Lends the context to `body` in the form in which it crosses the boundary.
    package func lend(to body: (UnsafePointer<plugin_call_context>) -> Void) {
        (trace?.traceparent ?? "").withPluginString { parent in
            (trace?.tracestate ?? "").withPluginString { state in
                (caller ?? "").withPluginString { caller in
                    var raw = plugin_call_context()
                    raw.size = UInt32(MemoryLayout<plugin_call_context>.size)
                    (raw.trace_parent, raw.trace_state, raw.caller) = (parent, state, caller)
                    if let trace {
                        raw.trace_flags = trace.flags
                        withUnsafeMutableBytes(of: &raw.trace_id) { $0.copyBytes(from: trace.traceID.bytes) }
                        withUnsafeMutableBytes(of: &raw.span_id) { $0.copyBytes(from: trace.spanID.bytes) }
                    }
                    body(&raw)
                }
            }
        }
    }
}
